"""Mask secrets in all files of a run: values of variables that may be secret, and texts with the form of a secret.

``is_secret`` and ``is_harmless`` classify variables by their names: the value is secret, harmless, or neither. A value
is masked if the name of its variable or parameter marks a secret, or if an expression of the workflow reads it from
perfflow's environment, unless the variable is known to be harmless. Values of fewer than ``SHORTEST`` characters,
numbers, existing paths, revisions, and texts in the workflow's file are never masked: masking each ``1`` would hide
more than it protects.

``Secrets`` searches every text in linear time: values by ``str.find``, forms by patterns without a repetition that can
fail late.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

_SECRET_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WITHIN = re.compile(
    "PASSWORD|PASSWD|PASSPHRASE|PASSCODE|APIKEY|APITOKEN|AUTHTOKEN|AUTHKEY|SECRETKEY|ACCESSKEY|PRIVATEKEY|ACCESSTOKEN"
    "|CONNECTIONSTRING|CONNSTR|CONNECTION_STRING|CONN_STR"
)
"""Texts that mark a secret even if the words of a name are run together, as in ``PGPASSWORD``."""
_ALWAYS = frozenset({"SECRET", "SECRETS", "JWT", "PAT", "CREDS", "DSN", "WEBHOOK"})
"""Words that mark a secret in any position."""
_WORDS = frozenset(
    {"TOKEN", "PASS", "PWD", "PW", "PSW", "CREDENTIAL", "CREDENTIALS", "CRED", "BEARER", "COOKIE", "COOKIES"}
    | {"AUTH", "SALT", "SIGNATURE"}
)
"""Words that mark a secret unless the last word means a property of the secret (``_ABOUT``)."""
_ABOUT = frozenset(
    {"FILE", "PATH", "DIR", "FOLDER", "SOCK", "SOCKET", "HOST", "PORT", "URL", "URI", "ENDPOINT", "SERVER", "REGION"}
    | {"TYPE", "NAME", "USER", "USERNAME", "COUNT", "LIMIT", "LENGTH", "LEN", "SIZE", "TTL", "TIMEOUT", "EXPIRY"}
    | {"EXPIRES", "MODE", "METHOD", "MECHANISM", "ENABLED", "DISABLED", "HEADER", "ALGORITHM", "ALG", "PROVIDER"}
    | {"VERSION", "FORMAT", "POLICY", "RATE", "COMMAND", "CMD", "HELPER", "PROGRAM", "STORE", "BACKEND", "POLICIES"}
)
_OPEN_KEYS = frozenset(
    {"PUBLIC", "PRIMARY", "FOREIGN", "SORT", "CACHE", "PARTITION", "HOT", "COMPOSE", "GROUP", "SHORTCUT", "META"}
    | {"ROUTING", "HASH", "MAP", "MODIFIER", "ARROW", "INDEX"}
)
"""Words before ``KEY`` for keys that are not secret."""
_AFTER_KEY = frozenset({"ID", "BASE", "B", "PEM", "JSON", "DATA"})
_STORES = frozenset(
    {"DATABASE", "DB", "REDIS", "MONGO", "MONGODB", "POSTGRES", "POSTGRESQL", "PG", "MYSQL", "MARIADB", "AMQP"}
    | {"RABBITMQ", "BROKER", "CELERY", "CLICKHOUSE", "ELASTICSEARCH", "SENTRY", "KAFKA", "NATS", "SQLALCHEMY"}
)
"""Words before ``URL`` for addresses that may contain a password."""

_HARMLESS = re.compile(
    "LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLORTERM|SHELL|PATH|HOME|PWD|OLDPWD|TMPDIR|TMP|TEMP|CI"
    "|CC|CXX|CPP|FC|LD|AR|NM|[A-Z]{1,3}FLAGS|CPPFLAGS|CXXFLAGS|LDFLAGS|MAKEFLAGS|CMAKE_[A-Z_]+|SOURCE_DATE_EPOCH"
    "|RUSTFLAGS|RUSTDOCFLAGS|RUSTC|RUSTC_WRAPPER|RUST_BACKTRACE|RUST_MIN_STACK|RUSTUP_TOOLCHAIN|CARGO_HOME"
    "|CARGO_TARGET_DIR|CARGO_INCREMENTAL|CARGO_BUILD_[A-Z_]+|CARGO_PROFILE_[A-Z_]+"
    "|GOFLAGS|GOMAXPROCS|GOGC|GOMEMLIMIT|GODEBUG|GOARCH|GOOS|CGO_[A-Z]+|JAVA_HOME|NODE_ENV"
    "|PYTHONHASHSEED|PYTHONPATH|PYTHONHOME|PYTHONOPTIMIZE|PYTHONMALLOC|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED"
    "|PYTHONUTF8|PYTHONIOENCODING|PYTHON_GIL|VIRTUAL_ENV|CONDA_PREFIX|CONDA_DEFAULT_ENV"
    "|(?:OMP|KMP|GOMP|MKL|OPENBLAS|BLIS|VECLIB|NUMEXPR|NUMBA|TBB|RAYON|MALLOC|NCCL)_[A-Z_]+|GLIBC_TUNABLES"
    "|LD_PRELOAD|LD_LIBRARY_PATH|LD_BIND_NOW|CUDA_[A-Z_]+|NVIDIA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES"
    "|ROCR_VISIBLE_DEVICES|PYTORCH_CUDA_ALLOC_CONF|XLA_FLAGS|JAX_PLATFORMS|TOKENIZERS_PARALLELISM|PERFFLOW_[A-Z_]+"
)
"""Variables whose values affect runs but are never secret: compilers, threads, allocators, devices."""


def is_secret(name: str) -> bool:
    """Return whether the words of a name mark a secret value: ``DB_PASS``, ``PGPASSWORD``, ``accessToken``.

    Properties of a secret are not secret: ``TOKEN_LIMIT``, ``PASSWORD_FILE``.
    """
    words = [word.upper() for word in _SECRET_WORD.findall(name)]
    if not words or words == ["PWD"]:
        return False
    if _ALWAYS.intersection(words):
        return words[-1] not in _ABOUT - {"URL", "URI", "ENDPOINT"}
    if words[-1] in ("URL", "URI") and _STORES.intersection(words):
        return True
    if words[-1] in _ABOUT:
        return False
    return bool(_WITHIN.search("_".join(words)) or _WORDS.intersection(words) or _has_secret_key(words))


def _has_secret_key(words: list[str]) -> bool:
    """Return whether a name ends in ``KEY``, or ``KEY`` and its format, and no word marks a key that is not secret."""
    for number, word in enumerate(words):
        rest = words[number + 1 :]
        if word == "KEY" and number and all(item in _AFTER_KEY or item.isdigit() for item in rest):
            return words[number - 1] not in _OPEN_KEYS
    return False


def is_harmless(name: str) -> bool:
    """Return whether values of this variable may be stored, by a fixed list."""
    return bool(_HARMLESS.fullmatch(name))


SHORTEST = 8
MASK = "***"
_WORD = "[A-Za-z0-9_-]"
_DIGIT = "(?=[A-Za-z_-]{0,64}[0-9])"
"""A token contains a digit; a word such as ``sk-learn-contrib-packages`` does not."""
_KEY = r"[A-Za-z0-9+/=,.:()\s\\]"
_SHAPES = {
    start: rf"(?:(?<!{_WORD})|(?<=\\[nrt])){re.escape(start)}{rest}"
    for starts, rest in (
        ("ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{16}[A-Za-z0-9_.-]*"),
        ("github_pat_ sk_live_ sk_test_ rk_live_ rk_test_ whsec_ npm_ hf_ dckr_pat_ glsa_", r"[A-Za-z0-9]{16}\w*"),
        ("glpat- gldt- glrt- glcbt- glptt- glft- glimt- glsoat- glagent-", rf"{_WORD}{{16}}[A-Za-z0-9_.-]*"),
        ("sk- pypi-", rf"{_DIGIT}{_WORD}{{20}}{_WORD}*"),
        ("xox", r"[abceoprs]-[A-Za-z0-9]{8}[A-Za-z0-9-]*"),
        ("AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("AIza", rf"{_WORD}{{35}}{_WORD}*"),
        ("SG.", rf"{_WORD}{{16,64}}\.{_WORD}{{16}}{_WORD}*"),
        ("eyJ", rf"{_WORD}{{8}}{_WORD}*+\.eyJ{_WORD}{{4}}{_WORD}*+\.{_WORD}*"),
    )
    for start in starts.split()
} | {
    # The group is not possessive: up to Python 3.11.2, such a group keeps the text of its last, failed repetition.
    "-----BEGIN ": rf"-----BEGIN [A-Z ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----{_KEY}*+(?:-(?!----){_KEY}*+)*"
    r"(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
}
"""Patterns of tokens of well-known services, JSON Web Tokens and private keys, by the text that they begin with."""
_ADDRESS = re.compile(r"://([^\s/:@'\"<>]{0,256}:[^\s/@'\"<>]{1,512})@", re.ASCII)
"""The user and the password of an address such as ``postgres://user:password@host``."""
_REVISION = re.compile(r"[0-9a-f]{7,64}")
_OWN_WORDS = frozenset(
    {"baseline", "candidate", "benchmark", "measuring", "interrupted", "optimizing", "bisecting", "improved"}
    | {"regressed", "unproven", "accepted", "rejected", "attributed", "working tree", "not measured", "unpaired"}
    | {"instructions", "throughput", "bandwidth", "occupancy", "cache_misses", "branch_misses", "heap_peak"}
    | {"binary_size", "syscalls", "uncontended", "gpu_memory_peak", "warp_efficiency", "dataloader_fraction"}
)
"""Words that occur in the files of every run, and are never masked even if they are someone's password."""


@dataclass(frozen=True)
class Secrets:
    """Secrets to mask: ``values`` in every form in which they may be written, the longest first.

    ``written`` is the text of the workflow's file. A text in it is not masked, even if it has the form of a secret.
    """

    values: tuple[str, ...] = ()
    written: str = ""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the spans to mask as (start, end) in order. Spans do not overlap or touch."""
        if len(text) < SHORTEST:
            return []
        found = [span for value in self.values if value in text for span in _places(text, value)]
        found += [(start, end) for start, end in _shapes(text) if self._is_one(text[start:end])]
        return list(_joined(sorted(found)))

    def as_bytes(self) -> Secrets:
        """Return the same secrets for texts that were decoded byte by byte, as Latin-1."""
        return Secrets(tuple(_byte_by_byte(value) for value in self.values), _byte_by_byte(self.written))

    def _is_one(self, shape: str) -> bool:
        return len(shape) >= SHORTEST and shape not in self.written


def _places(text: str, value: str) -> Iterator[tuple[int, int]]:
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        yield start, end
        start = text.find(value, end)


@cache
def _pattern(begins: str) -> re.Pattern[str]:
    # Compiled on use: most are never needed, and compiling all would take longer than a short run.
    return re.compile(_SHAPES[begins], re.ASCII)


def _shapes(text: str) -> Iterator[tuple[int, int]]:
    # Search by the first characters: one pattern for all would check each letter several times.
    for begins in [begins for begins in _SHAPES if begins in text]:
        start = text.find(begins)
        while start >= 0:
            match = _pattern(begins).match(text, start)
            if match:
                yield match.span()
            start = text.find(begins, match.end() if match else start + len(begins))
    if "://" in text:
        yield from (match.span(1) for match in _ADDRESS.finditer(text))


def _joined(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Merge spans that overlap or touch, so that no part of two overlapping secrets remains."""
    last: tuple[int, int] | None = None
    for start, end in spans:
        if last and start <= last[1]:
            last = (last[0], max(last[1], end))
        else:
            if last:
                yield last
            last = (start, end)
    if last:
        yield last


def _byte_by_byte(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def secrets_in(
    *named: Mapping[str, Any],
    read: Mapping[str, str] | None = None,
    written: str = "",
    is_revision: Callable[[str], bool] = lambda _: False,
) -> Secrets:
    """Return the secrets among ``named`` values, by their names, and among variables that expressions ``read``.

    ``written``: the text of the workflow. ``is_revision``: whether a hexadecimal text is an object of the project's
    repository.
    """
    values = {value for source in named for name, value in source.items() if is_secret(name)}
    values |= {value for name, value in (read or {}).items() if not is_harmless(name)}
    hidden = (value for value in values if isinstance(value, str) and _hides(value, written, is_revision))
    forms = {form for value in hidden for form in _forms(value)}
    return Secrets(tuple(sorted(forms, key=lambda text: (-len(text), text))), written)


def _hides(value: str, written: str, is_revision: Callable[[str], bool]) -> bool:
    """Return whether a value must be masked."""
    if len(value) < SHORTEST or value in _OWN_WORDS or value in written or "${{" in value or _is_number(value):
        return False
    return not (_is_path(value) or (_REVISION.fullmatch(value) and is_revision(value)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_path(text: str) -> bool:
    """Return whether a text is an existing path, or a list of such paths."""
    try:
        return all(Path(part).exists() for part in text.split(":") if part)
    except (OSError, ValueError):
        return False


def _forms(value: str) -> Iterator[str]:
    """Yield the forms in which a value may be written: plain, in JSON, in shell text, in an address; also by line."""
    lines = [line.strip() for line in value.splitlines()]
    for text in {value, *(line for line in lines if len(lines) > 1 and len(line) >= SHORTEST)}:
        yield text
        yield json.dumps(text)[1:-1]
        yield json.dumps(text, ensure_ascii=False)[1:-1]
        yield text.replace("'", "'\"'\"'")
        yield re.sub(r'([\\"$`])', r"\\\1", text)
        yield quote(text, safe="", errors="replace")


def masked(value: Any, secrets: Secrets) -> Any:
    """Return the same data with the secrets in its texts masked; names of fields stay unchanged."""
    if isinstance(value, str):
        spans = secrets.spans(value)
        return without(value, spans) if spans else value
    if isinstance(value, list):
        return [masked(item, secrets) for item in value]
    if isinstance(value, tuple):
        return tuple(masked(item, secrets) for item in value)
    if isinstance(value, dict):
        return {key: masked(item, secrets) for key, item in value.items()}
    if isinstance(value, BaseModel):
        return value.model_copy(
            update={name: masked(getattr(value, name), secrets) for name in type(value).model_fields}
        )
    if is_dataclass(value) and not isinstance(value, type):
        contents = {about.name: getattr(value, about.name) for about in fields(value)}
        return replace(value, **{name: masked(item, secrets) for name, item in contents.items()})
    return value


def without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with each span replaced by a mask; spans are in order."""
    parts, position = list[str](), 0
    for start, end in spans:
        parts += [text[position:start], MASK]
        position = end
    return "".join([*parts, text[position:]])
