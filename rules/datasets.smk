rule dataset:
    """Fetch, verify and decode a data set; its arrays in canonical order."""
    input:
        inputs_of("dataset"),
    output:
        data="results/{scale}/datasets/{dataset}.npz",
        record="results/{scale}/datasets/{dataset}.record.json",
    log:
        "results/{scale}/logs/datasets/{dataset}.log",
    retries: 1
    conda:
        "../envs/clpapers.yaml"
    resources:
        mem_mb=lambda w, attempt: attempt * (1000 + 2 * decoded_mb(plan(w.scale), w.dataset)),  # and a copy on its way into the archive
        runtime=240,
        # not params: the same bytes from another place are no reason to make anything anew
        data_folder=SETTINGS["data_folder"],
        downloads=SETTINGS["downloads"],
    params:
        code=code_of("dataset"),
        settings=settings_of("dataset"),
    shell:
        "clpapers dataset --out {output.data} --data-folder {resources.data_folder:q}"
        " --downloads {resources.downloads:q} > {log} 2>&1"


rule weights:
    """Fetch and verify pre-trained weights; their arrays."""
    input:
        inputs_of("weights"),
    output:
        weights="results/{scale}/weights/{weights}.npz",
        record="results/{scale}/weights/{weights}.record.json",
    log:
        "results/{scale}/logs/weights/{weights}.log",
    retries: 1
    conda:
        "../envs/clpapers.yaml"
    resources:
        mem_mb=2000,
        runtime=60,
        data_folder=SETTINGS["data_folder"],  # not params: as for data sets
        downloads=SETTINGS["downloads"],
    params:
        code=code_of("weights"),
        settings=settings_of("weights"),
    shell:
        "clpapers weights --out {output.weights} --data-folder {resources.data_folder:q}"
        " --downloads {resources.downloads:q} > {log} 2>&1"


rule features:
    """Make features of a data set's images with pre-trained weights; a data set like any other."""
    input:
        inputs_of("features"),
    output:
        data="results/{scale}/datasets/{dataset}.npz",
        record="results/{scale}/datasets/{dataset}.record.json",
    log:
        "results/{scale}/logs/datasets/{dataset}.log",
    wildcard_constraints:
        dataset="|".join(DERIVED) or "-",
    conda:
        "../envs/clpapers.yaml"
    threads: 1
    resources:
        gpu=1 if CUDA else 0,  # no param, as for runs
        gpu_mem_mb=0,  # as for runs
        mem_mb=lambda w, input, attempt: attempt * (2000 + 2 * input.size_mb),
        runtime=lambda w, attempt: 720 * attempt,
    params:
        code=code_of("features"),
        settings=settings_of("features"),
    shell:
        "clpapers features --out {output.data} --gpus {resources.gpu} --gpu-mem-mb {resources.gpu_mem_mb} > {log} 2>&1"


ruleorder: features > dataset
