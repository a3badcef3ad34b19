"""Classify variables by their names: the value is secret, harmless, or neither."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
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
    words = [word.upper() for word in _WORD.findall(name)]
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
