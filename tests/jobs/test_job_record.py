"""A record reads whatever somebody wrote into it, and says what could not be read."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.fleet.jobs.record import JobRecord, JobState, encoded_info, info_of

IDENT = "eed6rdmqqi18ps2eqfatkjyld"


def parsed(**fields: str) -> JobRecord:
    return JobRecord.parse({"url": "http://www.example.com/", **fields}, ident=IDENT)


def test_the_state_is_told_as_archivebot_tells_it() -> None:
    assert parsed().state is JobState.QUEUED
    assert parsed(started_at="1700000000.25").state is JobState.RUNNING
    assert parsed(started_at="1.5", finished_at="2").state is JobState.COMPLETED
    assert parsed(finished_at="2", aborted="true").state is JobState.ABORTED
    assert parsed(failed="true").state is JobState.FAILED


def test_a_flag_is_true_whatever_its_text_says() -> None:
    assert parsed(aborted="false").aborted
    assert parsed(aborted="0").aborted
    assert not parsed(aborted="").aborted


def test_what_is_no_number_counts_as_absent_and_is_told() -> None:
    record = parsed(
        concurrency="many", delay_min="1e9", started_at="nan", finished_at="inf", r2xx="9" * 40
    )
    assert (record.concurrency, record.delay_min, record.started_at) == (None, None, None)
    assert (record.finished_at, record.r2xx) == (None, None)
    assert len(record.faults) == 5


def test_a_log_may_be_trimmed_to_its_end() -> None:
    record = parsed(last_trimmed_log_entry="+inf")
    assert record.last_trimmed_log_entry == math.inf
    assert record.faults == ()


def test_texts_are_cut_and_made_utf_8() -> None:
    record = parsed(note="x" * 20_000, started_by="\udcff")
    assert (len(record.note), record.started_by) == (16_384, "?")
    assert len(record.faults) == 2


def test_a_hash_without_a_url_is_no_job() -> None:
    assert not JobRecord.parse({"heartbeat": "3"}, ident=IDENT).exists


def test_the_object_for_pages_has_numbers_and_their_names() -> None:
    data = parsed(
        fetch_depth="inf", bytes_downloaded="5", warc_size="7", queued_at="1700000000"
    ).job_data()
    assert set(data) == {
        *("aborted", "finished", "depth", "ident", "url", "note", "pipeline_id", "started_by"),
        *("started_in", "queued_at", "started_at", "finished_at", "bytes_downloaded"),
        *("items_downloaded", "items_queued", "error_count", "warc_size", "suppress_ignore_reports"),
        *("concurrency", "delay_min", "delay_max", "r1xx", "r2xx", "r3xx", "r4xx", "r5xx", "runk"),
    }
    assert (data["depth"], data["bytes_downloaded"], data["warc_size"]) == ("inf", 5, 7)


@pytest.mark.slow
@given(
    st.dictionaries(
        st.sampled_from(["url", "note", "concurrency", "started_at", "aborted", "x", "log_score"])
        | st.text(max_size=8),
        st.text(alphabet=st.characters(), max_size=30),
        max_size=8,
    ),
    st.text(max_size=30),
)
def test_no_hash_is_beyond_reading(fields: dict[str, str], ident: str) -> None:
    record = JobRecord.parse(fields, ident=ident)
    json.dumps(record.job_data()).encode()
    encoded_info(info_of(fields, None)).encode()
    assert isinstance(record.state, JobState)
