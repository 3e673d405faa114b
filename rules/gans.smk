rule gans:
    """Train the GANs that runs share, along one seed's stream; one file and one record."""
    input:
        inputs_of("gans"),
    output:
        gans="results/{scale}/gans/{dataset}/{order}/{run}/{block}.npz",
        record="results/{scale}/gans/{dataset}/{order}/{run}/{block}.record.json",
    log:
        "results/{scale}/logs/gans/{dataset}/{order}/{run}/{block}.log",
    conda:
        "../envs/clpapers.yaml"
    threads: 1
    resources:
        runs=runs_of("gans"),
        gpu=1 if CUDA else 0,  # no param: what a CPU has trained a GPU need not train again
        gpu_mem_mb=0,  # all of a card; profiles/gpu says how much instead
        mem_mb=lambda w, input, attempt: attempt * (4000 + 3 * input.size_mb),
        runtime=lambda w, attempt: 720 * attempt,  # killed for time, it goes on from its checkpoint
    params:
        code=code_of("gans"),
        settings=settings_of("gans"),
    shell:
        "clpapers gans --out {output.gans} --runs {resources.runs} --gpus {resources.gpu} --gpu-mem-mb {resources.gpu_mem_mb} > {log} 2>&1"
