rule audit:
    """Hold every file that is built against records, config and code; runs each time it is asked for."""
    log:
        f"results/{SCALE}/logs/audit.log",
    localrule: True
    conda:
        "../envs/clpapers.yaml"
    resources:
        mem_mb=2000,
        runtime=120,
    params:
        scale=SCALE,
    shell:
        "clpapers audit --scale {params.scale} 2>&1 | tee {log}"
