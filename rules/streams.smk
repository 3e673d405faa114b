rule stream:
    """Permute a data set into one seed's stream; a permutation-index file."""
    input:
        inputs_of("stream"),
    output:
        stream="results/{scale}/streams/{dataset}/{order}/seed{seed}.npz",
        record="results/{scale}/streams/{dataset}/{order}/seed{seed}.record.json",
    log:
        "results/{scale}/logs/streams/{dataset}/{order}/seed{seed}.log",
    wildcard_constraints:
        seed=r"\d+",
    conda:
        "../envs/clpapers.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("stream"),  # and the path says all the settings
    shell:
        "clpapers stream --out {output.stream} > {log} 2>&1"


rule entropy:
    """Simulate how much of the truncated normal's entropy the Beta captures (stf, appendix E)."""
    input:
        inputs_of("entropy"),
    output:
        ratios="results/{scale}/streams/entropy/{paper}-{target}.npz",
        record="results/{scale}/streams/entropy/{paper}-{target}.record.json",
    log:
        "results/{scale}/logs/streams/entropy/{paper}-{target}.log",
    conda:
        "../envs/clpapers.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        code=code_of("entropy"),
        settings=settings_of("entropy"),
    shell:
        "clpapers entropy --out {output.ratios} > {log} 2>&1"
