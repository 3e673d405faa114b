rule train:
    """Train one cell's seeds; one result file and one record."""
    input:
        inputs_of("train"),
    output:
        result="results/{scale}/runs/{dataset}/{order}/{run}/{block}.json",
        record="results/{scale}/runs/{dataset}/{order}/{run}/{block}.record.json",
    log:
        "results/{scale}/logs/runs/{dataset}/{order}/{run}/{block}.log",
    conda:
        "../envs/clpapers.yaml"
    threads: 1
    resources:
        runs=runs_of("train"),
        gpu=1 if CUDA else 0,  # no param: what a CPU has trained a GPU need not train again
        gpu_mem_mb=card_mb,
        mem_mb=lambda w, attempt: attempt * (4000 + 3 * decoded_mb(plan(w.scale), w.dataset)),
        runtime=lambda w, attempt: 720 * attempt,  # killed for time, it goes on from its checkpoint
    params:
        code=code_of("train"),  # and the path says all the settings
    shell:
        "clpapers train --out {output.result} --runs {resources.runs} --gpus {resources.gpu} --gpu-mem-mb {resources.gpu_mem_mb} > {log} 2>&1"


rule selection:
    """Choose a learner's hyper-parameters: every point of the grid with its score, and the best."""
    input:
        inputs_of("selection"),
    output:
        selection="results/{scale}/selection/{paper}/{search}.json",
        record="results/{scale}/selection/{paper}/{search}.record.json",
    log:
        "results/{scale}/logs/selection/{paper}/{search}.log",
    conda:
        "../envs/clpapers.yaml"
    resources:
        runs=runs_of("selection"),
        mem_mb=2000,
        runtime=10,
    params:
        code=code_of("selection"),
        settings=settings_of("selection"),
        gpus=1 if CUDA else 0,  # decides which seeds share a file
    shell:
        "clpapers selection --out {output.selection} --runs {resources.runs} --gpus {params.gpus} > {log} 2>&1"


rule net:
    """Describe the net that a paper learns a data set with: its layers and parameter counts."""
    input:
        inputs_of("net"),
    output:
        net="results/{scale}/runs/nets/{paper}/{dataset}.json",
        record="results/{scale}/runs/nets/{paper}/{dataset}.record.json",
    log:
        "results/{scale}/logs/runs/nets/{paper}/{dataset}.log",
    conda:
        "../envs/clpapers.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        code=code_of("net"),
        settings=settings_of("net"),
    shell:
        "clpapers net --out {output.net} > {log} 2>&1"


rule index:
    """List every cell with its factors, its files and the targets it serves."""
    output:
        index="results/{scale}/runs/index.csv",
        record="results/{scale}/runs/index.record.json",
    log:
        "results/{scale}/logs/runs/index.log",
    conda:
        "../envs/clpapers.yaml"
    resources:
        runs=runs_of("index"),
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("index"),
        settings=settings_of("index"),
        gpus=1 if CUDA else 0,
    shell:
        "clpapers index --out {output.index} --runs {resources.runs} --gpus {params.gpus} > {log} 2>&1"
