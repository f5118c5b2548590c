"""One open WARC and its row journal: what a worker writes to.

The order is the guarantee: records synced, then rows synced. The open file is `OUT/NAME.open`, its journal
`PARTS/NAME.journal`; the journal exists, durably, before the WARC does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from isal import isal_zlib

from muniment.archive.durable import GrowingFile, archive_error, seal
from muniment.archive.index.journal import JournalEntry, entry_frame, header_frame, journal_path
from muniment.archive.index.rows import failure_row, record_row, resource_row
from muniment.archive.names import OPEN_SUFFIX
from muniment.archive.warc import records
from muniment.archive.warc.digest_labels import sha1_label, sha1_of
from muniment.archive.warc.exchange_records import LARGE, ExchangeRecords, RecordSource, build_records, compress
from muniment.archive.warc.members import Part, deflate_member, store_member, stream_deflated, stream_stored
from muniment.archive.warc.records import RECORD_END, ExchangeHeader
from muniment.archive.warc.warcinfo import WarcInfo, warcinfo_record
from muniment.clock import new_record_urn, now_us
from muniment.disk import sync_directory
from muniment.errors import ArchiveError
from muniment.model.capture import Capture, EarlierCapture, PageContext
from muniment.model.exchange import Exchange
from muniment.model.failure import Failure
from muniment.model.result import PageResource

__all__ = ["Segment"]


class Segment:
    """One WARC that is being written, and its journal.

    Not for two threads at once: `sync` and `seal` block and may run in another thread, but only while no `write` runs.
    When a write, a sync or a seal raises `DiskFullError` or `ArchiveError`, the WARC has been cut back to the last
    synced length: every capture since then is lost and must be repeated; `end` may still be called.
    """

    def __init__(self, warc: GrowingFile, journal: GrowingFile, name: str) -> None:
        self.name = name
        self._warc = warc
        self._journal = journal
        self._warcinfo = ""
        self._first = b""
        self._safe = 0
        self._checksum = 0
        self._fresh: list[Capture] = []

    @classmethod
    def open(cls, out: Path, parts: Path, name: str, info: WarcInfo) -> Segment:
        """Begin the WARC `name` (such as `muniment-00000.warc.gz`); no file of this name may exist yet."""
        try:
            if (out / name).exists():
                raise ArchiveError(f"{name} exists already")
            parts.mkdir(exist_ok=True)
            sync_directory(out)
            journal = GrowingFile(journal_path(parts, name))
            journal.append(header_frame(name))
            journal.sync()
            sync_directory(parts)
            warc = GrowingFile(out / (name + OPEN_SUFFIX))
            sync_directory(out)
        except OSError as error:
            raise archive_error(error, out / name) from error
        segment = cls(warc, journal, name)
        segment._write_warcinfo(info)
        return segment

    @property
    def holds_records(self) -> bool:
        """Whether something was written beside the warcinfo record."""
        return self._warc.length > len(self._first)

    @property
    def size(self) -> int:
        """Bytes of the WARC so far, those not yet on the disk included; the caller rolls by it before a record."""
        return self._warc.length

    def write(
        self,
        exchange: Exchange,
        context: PageContext,
        earlier: EarlierCapture | None = None,
        *,
        unchanged: bool = False,
    ) -> Capture:
        """Add the records of one exchange and its row; buffered, safe only after `sync`.

        `earlier` is an earlier capture of the same payload: the exchange becomes a revisit of it, unless it is
        truncated or failed, or, not being `unchanged` from what the seed list knows, no larger than
        `revisits.REVISIT_ABOVE`. An exchange without a header block leaves a row only.
        """
        if not exchange.head:
            failure = exchange.failure or Failure("protocol", "no response header")
            return self.write_failure(exchange.url, failure, context, exchange)
        return self._write((exchange, context, earlier, unchanged), None)

    def write_prepared(self, made: ExchangeRecords) -> Capture:
        """The same of what `prepare` made, which is made again when it was for another file."""
        return self._write(made.source, made)

    def prepare(self, sources: Sequence[RecordSource]) -> list[ExchangeRecords]:
        """Make and compress the records of exchanges with no large body, for `write_prepared`; nothing is written.

        One after the other, each record's compression would push out of the processor's cache what makes the next.
        """
        made = build_records(sources, self._warcinfo)
        for one in made:
            compress(one)
        return made

    def write_resource(self, resource: PageResource, page: Exchange, context: PageContext, response: str) -> Capture:
        """Add the record of what a browser made of a page, whose response has this id, and its row."""
        event = ExchangeHeader.of(page, self._warcinfo, context)
        digest = sha1_of(resource.block)
        offset = self._warc.length
        whole = records.resource_record(event, response, resource, sha1_label(digest))
        already_dense = resource.content_type.startswith("image/")
        self._append(store_member((whole,)) if already_dense else deflate_member(whole))
        place = (self.name, offset, self._warc.length - offset)
        capture = resource_row(resource, page, context, digest, place)
        self._note(capture)
        return capture

    def write_failure(
        self, url: str, failure: Failure, context: PageContext, exchange: Exchange | None = None
    ) -> Capture:
        """Add a row without a record; `exchange` is given when one was begun, for its times and address."""
        capture = failure_row(url, failure, context, now_us(), exchange)
        self._note(capture)
        return capture

    def sync(self) -> list[Capture]:
        """Make everything written so far durable, records first and then rows; the captures that became so.

        Blocks. When it raises, none of them did.
        """
        try:
            self._warc.sync()
            self._journal.sync()
        except ArchiveError:
            self._forget()
            raise
        self._safe = self._warc.length
        done, self._fresh = self._fresh, []
        return done

    def end(self) -> None:
        """Sync and close: nothing more is written, and what verifies the file gives it its final name. Blocks."""
        self.sync()
        self.close()

    def seal(self) -> None:
        """End, and give the WARC its final name at once; the journal stays until it has been indexed. Blocks."""
        self.end()
        final = self._warc.path.with_name(self.name)
        try:
            seal(self._warc.path, final)
        except OSError as error:
            raise archive_error(error, final) from error

    def close(self) -> None:
        """Give back the descriptors without sealing: the file is left for `repair`; safe to call twice."""
        self._warc.close()
        self._journal.close()

    def _write_warcinfo(self, info: WarcInfo) -> None:
        self._warcinfo = new_record_urn()
        self._first = deflate_member(warcinfo_record(info, self.name, self._warcinfo, now_us()))
        self._begin()

    def _begin(self) -> None:
        self._append(self._first)
        self._journal.append(self._entry(None))

    def _write(self, source: RecordSource, made: ExchangeRecords | None) -> Capture:
        mark = self._warc.length
        try:
            if made is None or made.warcinfo != self._warcinfo:
                (made,) = build_records((source,), self._warcinfo)
            capture = self._write_records(made)
        except OSError as error:
            self._warc.cut(mark)
            self._checksum = 0
            raise archive_error(error, self._warc.path) from error
        except ArchiveError:
            self._forget()
            raise
        self._note(capture)
        return capture

    def _write_records(self, made: ExchangeRecords) -> Capture:
        exchange, context, _, unchanged = made.source
        offset = self._warc.length
        if made.record_type == "response" and exchange.body.length > LARGE:
            stream = stream_stored if made.stored else stream_deflated
            stream(chain[Part](made.parts, (exchange.head,), exchange.body.wire(), (RECORD_END,)), self._append)
        else:
            compress(made)
            self._append(made.member)
        place = (self.name, offset, self._warc.length - offset)
        sent = exchange.request_body
        if sent is not None:
            request = chain[Part]((made.large_request, exchange.request), sent.wire(), (RECORD_END,))
            stream_deflated(request, self._append)
        for member in made.beside:
            self._append(member)
        return record_row(
            exchange, context, unchanged=unchanged, record_id=made.record_id, record_type=made.record_type, place=place
        )

    def _append(self, data: bytes) -> None:
        self._checksum = isal_zlib.crc32(data, self._checksum)
        self._warc.append(data)

    def _entry(self, capture: Capture | None) -> bytes:
        """The frame of what was appended since the last one."""
        checksum, self._checksum = self._checksum, 0
        return entry_frame(JournalEntry(self._warc.length, capture, checksum))

    def _note(self, capture: Capture) -> None:
        self._fresh.append(capture)
        try:
            self._journal.append(self._entry(capture))
        except ArchiveError:
            self._forget()
            raise

    def _forget(self) -> None:
        # Rows without their records, or records without their rows, must not stay: both go back to the last sync.
        self._journal.cut(self._journal.synced)
        self._warc.cut(self._safe)
        self._checksum = 0
        self._fresh.clear()
        if not self._safe:
            self._begin()
