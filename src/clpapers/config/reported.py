"""Read and check config/reported/*.csv, the transcriptions of the numbers that papers print."""

import csv
from pathlib import Path

from clpapers.config.refusals import ConfigError
from clpapers.config.schemas import schema, validate


def read_csv(
    path: Path, rules: str = "reported", unique: tuple[str, ...] = ("target", "row", "column", "metric")
) -> dict[str, dict[str, str]]:
    """Read a CSV file's lines, by place, such as `line 2`, and check them by a schema: by default a transcription's.

    rules: the schema's name; its required keys are the columns, and all of its keys if it has more. unique: columns in
    which no two lines are the same.

    Raises `ConfigError` that names file, line and column.
    """
    lines: dict[str, dict[str, str]] = {}
    of_line = schema(rules)["additionalProperties"]
    first_lines: dict[tuple[str, ...], str] = {}
    columns = of_line["required"]
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if reader.fieldnames == list(of_line["properties"]):
                columns = reader.fieldnames
            if reader.fieldnames != columns:
                raise ConfigError(f"{path}: line 1 is not {','.join(columns)}")
            for line in reader:
                where = f"line {reader.line_num}"
                if None in line or None in line.values():
                    raise ConfigError(f"{path}: {where} does not have {len(columns)} columns; quote what holds a comma")
                first = first_lines.setdefault(tuple(line[key] for key in unique), where)
                if first != where:
                    same = f"{', '.join(unique[:-1])} and {unique[-1]}"
                    raise ConfigError(f"{path}: {where} is of the same {same} as {first}")
                lines[where] = line
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except csv.Error as error:
        raise ConfigError(f"{path}: line {reader.reader.line_num}: {error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: {error}") from None
    validate(lines, schema(rules), path)
    return lines
