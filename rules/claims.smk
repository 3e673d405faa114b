rule claims:
    """Test what a paper claims on what was measured: a verdict each, with effect and interval."""
    input:
        inputs_of("claims"),
    output:
        csv=update("results/{scale}/targets/{paper}/claims.csv"),
        md=update("results/{scale}/targets/{paper}/claims.md"),
        tex=update("results/{scale}/targets/{paper}/claims.tex"),
        html=update("results/{scale}/targets/{paper}/claims.html"),
        record="results/{scale}/targets/{paper}/claims.record.json",
    log:
        "results/{scale}/logs/targets/{paper}/claims.log",
    conda:
        "../envs/clpapers.yaml"
    resources:
        runs=runs_of("claims"),
        mem_mb=2000,
        runtime=10,
    params:
        code=code_of("claims"),
        settings=settings_of("claims"),
    shell:
        "clpapers claims --out {output.csv} --runs {resources.runs} > {log} 2>&1"


rule scorecard:
    """Count the claims of the configured papers by their verdicts."""
    input:
        inputs_of("scorecard"),
    output:
        csv=update("results/{scale}/targets/scorecard.csv"),
        md=update("results/{scale}/targets/scorecard.md"),
        tex=update("results/{scale}/targets/scorecard.tex"),
        html=update("results/{scale}/targets/scorecard.html"),
        record="results/{scale}/targets/scorecard.record.json",
    log:
        "results/{scale}/logs/targets/scorecard.log",
    conda:
        "../envs/clpapers.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("scorecard"),
        settings=settings_of("scorecard"),
        papers=SETTINGS["papers"],
    shell:
        "clpapers scorecard --out {output.csv} --papers {params.papers} > {log} 2>&1"
