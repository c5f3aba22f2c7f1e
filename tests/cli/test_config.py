"""`assay config`."""

from __future__ import annotations

from support.command import assay


def test_lists_every_setting_with_value_origin_and_doc() -> None:
    result = assay("config", env={"TORCHDYNAMO_REPRO_LEVEL": "4", "ASSAY_REPRO_AFTER": "aot"})
    assert (result.code, result.err) == (0, "")
    rows = {line.split()[0]: line for line in result.out.splitlines()}
    assert " 4 " in rows["repro_level"]
    assert "environment variable TORCHDYNAMO_REPRO_LEVEL" in rows["repro_level"]
    assert " aot " in rows["repro_after"]
    assert "environment variable ASSAY_REPRO_AFTER" in rows["repro_after"]
    assert " 0.001 " in rows["repro_tolerance"]
    assert " default " in rows["repro_tolerance"]
    assert "(nothing)" in rows["logs"]
    assert "reserved: " in rows["fallback_random"]
    for row in assay("config", "--json").json():
        assert row["doc"] in rows[row["name"]]


def test_json_has_values_of_their_own_types() -> None:
    rows = {
        row["name"]: row for row in assay("config", "--json", env={"ASSAY_VERBOSE": "1"}).json()
    }
    assert rows["verbose"]["value"] is True
    assert rows["verbose"]["default"] is False
    assert rows["verbose"]["origin"] == "environment variable ASSAY_VERBOSE"
    assert rows["verbose"]["environment"] == ["ASSAY_VERBOSE", "TORCHDYNAMO_VERBOSE"]
    assert rows["verbose"]["reserved"] is False
    assert rows["fallback_random"]["reserved"] is True
    assert rows["repro_level"]["value"] == 2
    assert rows["repro_level"]["type"] == "integer"
    assert rows["repro_level"]["allowed"] == "an integer from 1 to 4"
    assert rows["repro_level"]["origin"] == "default"
    assert rows["repro_tolerance"]["value"] == 1e-3
    assert rows["repro_after"]["value"] == ""


def test_bad_values_are_shown_with_the_rest_of_the_list() -> None:
    bad = {"TORCHDYNAMO_REPRO_LEVEL": "5", "ASSAY_REPRO_TOLERANCE": "little"}
    result = assay("config", env=bad)
    assert result.code == 2
    assert "error: TORCHDYNAMO_REPRO_LEVEL is '5'\n  hint: expected an integer" in result.err
    assert "error: ASSAY_REPRO_TOLERANCE is 'little'" in result.err
    rows = {line.split()[0]: line for line in result.out.splitlines()}
    assert "(bad value)" in rows["repro_level"]
    assert "default" in rows["cache_size_limit"]
    listed = {row["name"]: row for row in assay("config", "--json", env=bad).json()}
    assert listed["repro_level"]["value"] is None
    assert listed["repro_level"]["error"].startswith("TORCHDYNAMO_REPRO_LEVEL is '5'")
