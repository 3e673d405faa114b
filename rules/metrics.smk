rule metrics:
    """Measure what a target shows: a tidy table, one row a cell, seed and metric."""
    input:
        inputs_of("metrics"),
    output:
        metrics=update("results/{scale}/metrics/{paper}/{target}.csv"),
        record="results/{scale}/metrics/{paper}/{target}.record.json",
    log:
        "results/{scale}/logs/metrics/{paper}/{target}.log",
    conda:
        "../envs/clpapers.yaml"
    resources:
        runs=runs_of("metrics"),
        mem_mb=4000,
        runtime=30,
    params:
        code=code_of("metrics"),
        settings=settings_of("metrics"),
        gpus=1 if CUDA else 0,  # decides which seeds share a file
    shell:
        "clpapers metrics --out {output.metrics} --runs {resources.runs} --gpus {params.gpus} > {log} 2>&1"
