"""What programs need to go through the recording proxy: its certificate as a file, and the variables that name both."""

from __future__ import annotations

from pathlib import Path

from muniment.crawl.hooks.given_folder import remove_given
from muniment.model.hooks.runs import HookNetwork
from muniment.rules.hooks.environment import recorded_network

__all__ = ["TrustFiles"]


class TrustFiles:
    """`muniment_network` in the folder of a page, or of the crawl; there while its hooks run."""

    def __init__(self, folder: Path, network: HookNetwork) -> None:
        self._network, self._folder = network, folder / "muniment_network"
        self._certificate, self._wgetrc = self._folder / "ca.pem", self._folder / "wgetrc"

    def write(self) -> None:
        """Write the certificate, and for wget, which has no variable for it, a file that names it. Raises OSError."""
        self.clear()
        self._folder.mkdir(parents=True)
        self._certificate.write_bytes(self._network.certificate)
        self._wgetrc.write_text(f"ca_certificate = {self._certificate}\n")

    @property
    def environment(self) -> dict[str, str]:
        """The variables that hooks get."""
        return recorded_network(self._network.address, str(self._certificate), str(self._wgetrc))

    def clear(self) -> None:
        """Remove them."""
        remove_given(self._folder, self._certificate.name, self._wgetrc.name)
