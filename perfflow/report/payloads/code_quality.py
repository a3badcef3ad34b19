"""GitLab's code quality report: functions that got slower, and hotspots."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from perfflow.model.result import Result
from perfflow.report.payloads.check_run import annotated_places
from perfflow.report.payloads.escape import inert_json

_SEVERITIES = {"failure": "major", "warning": "minor", "notice": "info"}


def text(result: Result) -> str:
    """Return the file. A fingerprint is made of file, function and kind, so it stays the same when lines move."""
    return inert_json(json.dumps(findings(result), ensure_ascii=True, indent=1)) + "\n"


def findings(result: Result) -> list[dict[str, Any]]:
    """Return each finding once, in the order of the result."""
    found: dict[str, dict[str, Any]] = {}
    for item in annotated_places(result):
        kind, _, function = item["title"].partition(": ")
        parts = "\0".join((item["path"], function, kind))
        fingerprint = hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()
        finding = {
            "description": item["message"],
            "check_name": f"perfflow-{kind}",
            "fingerprint": fingerprint,
            "severity": _SEVERITIES[item["annotation_level"]],
            "location": {"path": item["path"], "lines": {"begin": item["start_line"]}},
        }
        found.setdefault(fingerprint, finding)
    return list(found.values())
