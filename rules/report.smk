rule report:
    """The report of the scale at hand; not part of `all`, for it hashes all that it tells of."""
    input:
        f"results/{SCALE}/report/index.html",


rule site:
    """Build the site: pages on all that the configured papers' targets came out as, findings, guides and reference."""
    input:
        inputs_of("site"),
    output:
        index=update("results/{scale}/report/index.html"),
        manifest=update("results/{scale}/report/manifest-sha256.txt"),
        record="results/{scale}/report/index.record.json",
    log:
        "results/{scale}/logs/report/report.log",
    conda:
        "../envs/clpapers.yaml"
    resources:
        runs=runs_of("site"),
        mem_mb=2000,
        runtime=30,
    params:
        code=code_of("site"),
        settings=settings_of("site"),
        papers=SETTINGS["papers"],
        gpus=1 if CUDA else 0,  # decides which seeds share a file
    shell:
        "clpapers report --out {output.index} --runs {resources.runs} --papers {params.papers} --gpus {params.gpus} > {log} 2>&1"
