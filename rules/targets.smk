rule table:
    """Render a table."""
    input:
        inputs_of("table"),
    output:
        csv=update("results/{scale}/targets/{paper}/{target}.csv"),
        md=update("results/{scale}/targets/{paper}/{target}.md"),
        tex=update("results/{scale}/targets/{paper}/{target}.tex"),
        html=update("results/{scale}/targets/{paper}/{target}.html"),
        record="results/{scale}/targets/{paper}/{target}.record.json",
    log:
        "results/{scale}/logs/targets/{paper}/{target}.table.log",
    conda:
        "../envs/clpapers.yaml"
    resources:
        runs=runs_of("table"),
        mem_mb=2000,
        runtime=10,
    params:
        code=code_of("table"),
        settings=settings_of("table"),
    shell:
        "clpapers table --out {output.csv} --runs {resources.runs} > {log} 2>&1"


rule figure:
    """Render a figure."""
    input:
        inputs_of("figure"),
    output:
        pdf=update("results/{scale}/targets/{paper}/{target}.pdf"),
        svg=update("results/{scale}/targets/{paper}/{target}.svg"),
        png=update("results/{scale}/targets/{paper}/{target}.png"),
        caption=update("results/{scale}/targets/{paper}/{target}.caption.md"),
        tex=update("results/{scale}/targets/{paper}/{target}.caption.tex"),
        record="results/{scale}/targets/{paper}/{target}.record.json",
    log:
        "results/{scale}/logs/targets/{paper}/{target}.figure.log",
    conda:
        "../envs/clpapers.yaml"
    resources:
        runs=runs_of("figure"),
        mem_mb=2000,
        runtime=10,
    params:
        code=code_of("figure"),
        settings=settings_of("figure"),
    shell:
        "clpapers figure --out {output.pdf} --runs {resources.runs} > {log} 2>&1"


rule note:
    """Say what a figure without any run waits for."""
    input:
        inputs_of("note"),
    output:
        note="results/{scale}/targets/{paper}/{target}.unrun.md",
        record="results/{scale}/targets/{paper}/{target}.record.json",
    log:
        "results/{scale}/logs/targets/{paper}/{target}.note.log",
    conda:
        "../envs/clpapers.yaml"
    resources:
        runs=runs_of("note"),
        mem_mb=2000,
        runtime=10,
    params:
        code=code_of("note"),
        settings=settings_of("note"),
    shell:
        "clpapers note --out {output.note} --runs {resources.runs} > {log} 2>&1"


rule reported:
    """Set the reproduced numbers beside the reported ones, with a verdict each."""
    input:
        inputs_of("reported"),
    output:
        csv=update("results/{scale}/targets/{paper}/{target}.reported.csv"),
        record="results/{scale}/targets/{paper}/{target}.reported.record.json",
    log:
        "results/{scale}/logs/targets/{paper}/{target}.reported.log",
    conda:
        "../envs/clpapers.yaml"
    resources:
        runs=runs_of("reported"),
        mem_mb=2000,
        runtime=10,
    params:
        code=code_of("reported"),
        settings=settings_of("reported"),
    shell:
        "clpapers reported --out {output.csv} --runs {resources.runs} > {log} 2>&1"


rule paired:
    """Compare the methods pairwise on the same streams."""
    input:
        inputs_of("paired"),
    output:
        csv=update("results/{scale}/targets/{paper}/{target}.paired.csv"),
        record="results/{scale}/targets/{paper}/{target}.paired.record.json",
    log:
        "results/{scale}/logs/targets/{paper}/{target}.paired.log",
    conda:
        "../envs/clpapers.yaml"
    resources:
        runs=runs_of("paired"),
        mem_mb=2000,
        runtime=10,
    params:
        code=code_of("paired"),
        settings=settings_of("paired"),
    shell:
        "clpapers paired --out {output.csv} --runs {resources.runs} > {log} 2>&1"
