"""Post a message to a webhook: an address of Slack, Teams or another service that is a secret itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from urllib.request import Request

from perfflow.jobs.publish.http_request import (
    TOTAL,
    HttpResponse,
    NoAnswerError,
    RefusedError,
    ask,
    is_encrypted,
    retried,
    seconds_until,
    timeout,
)
from perfflow.model.errors import UserError
from perfflow.model.secrets import SHORTEST, Secrets, masked
from perfflow.report.payloads.escape import clipped
from perfflow.report.payloads.message import Message

_MADE_ANEW = "the address is not valid any more: make a new webhook, and put its address into that variable"
_REMEDIES = {
    400: "the service does not accept the message: --dry-run prints it",
    413: "the message is too large for the service: --dry-run prints it",
    415: "the service expects another type of content: name it by --content-type",
    422: "the service does not accept the message: --dry-run prints it",
    **dict.fromkeys((401, 403, 404, 410), _MADE_ANEW),
}


@dataclass(frozen=True)
class Webhook:
    """An address, and the environment variable that it was read from, which messages name in its place."""

    url: str = field(repr=False)
    variable: str
    ends: float = field(default_factory=lambda: time.monotonic() + TOTAL, repr=False)
    """The deadline for all tries, on the monotonic clock."""

    @classmethod
    def read(cls, variable: str, environment: Mapping[str, str]) -> Webhook:
        """Return the webhook whose address an environment variable has. Raises UserError if it has none."""
        url = environment.get(variable, "").strip()
        if fault := _fault(url):
            hint = f"in CI, set {variable} from a secret, for this step only; --url-from names another variable"
            raise UserError.of(f"{variable} has no address of a webhook: {fault}", hint)
        return cls(url, variable)

    def post(self, message: Message) -> int:
        """Send a message and return the status of the answer. Raises RefusedError, after retries if they can help.

        A request that was not answered is not repeated, since the message may have arrived.
        """
        return retried(lambda: self._try(message), self.ends)

    def _try(self, message: Message) -> int:
        headers = {"Content-Type": message.content_type, "User-Agent": "perfflow"}
        body = message.text.encode("utf-8", "replace")
        request = Request(self.url, body, headers, method="POST")  # noqa: S310 (the scheme is checked above)
        try:
            answer = ask(request, timeout(self.ends))
        except NoAnswerError as error:
            what = self._without_address(f"cannot reach the webhook in {self.variable}: {error}")
            arrived = "; the message may have arrived" if error.sent else ""
            raise RefusedError.because(what, f"check the address and the network{arrived}") from None
        if 200 <= answer.status < 300:
            return answer.status
        raise self._refused(answer)

    def _refused(self, answer: HttpResponse) -> RefusedError:
        said = answer.body.decode("utf-8", "replace").strip()
        # A proxy answers with a page.
        said = answer.reason if not said or said.startswith("<") else said
        after = seconds_until(answer.headers.get("retry-after"))
        later = "try again later" if after is None else f"try again in {after:.0f} s"
        what = f"the webhook in {self.variable} refuses the message: {answer.status} {said}"
        error = RefusedError.because(clipped(self._without_address(what), 400), _REMEDIES.get(answer.status, later))
        error.status = answer.status
        error.passing = answer.status == 429 or answer.status >= 500
        error.after = after if error.passing else None
        return error

    def _without_address(self, text: str) -> str:
        """Return a text without the address and without the parts of its path and query that may be the secret."""
        rest = urlsplit(self.url)._replace(scheme="", netloc="").geturl()
        parts = [
            part for word in rest.replace("?", "/").replace("&", "/").split("/") for part in (word, *word.split("="))
        ]
        known = {self.url, rest, *parts}
        values = sorted((part for part in known if len(part) >= SHORTEST), key=len, reverse=True)
        return str(masked(text, Secrets(tuple(values))))


def _fault(url: str) -> str:
    """Return what is wrong with an address, without a word of it; '' if nothing is."""
    if not url:
        return "it is empty or not set"
    if not url.isascii() or not url.isprintable() or " " in url:
        return "it has a space or a letter that no address has"
    try:
        parts = urlsplit(url)
        # A port that is no number raises ValueError. A name and a password would be taken for the host.
        if not parts.hostname or parts.port == 0 or "@" in parts.netloc:
            return "it is no address of a host"
        return "" if is_encrypted(url) else "it does not begin with https://"
    except ValueError:
        return "it is no address of a host"
