"""The place of a training's host among the others, and how it is told."""

import dataclasses
import os

import keras

from audio_tf.runs import distribution
from audio_tf.runs.settings import (
    NOT_NEGATIVE,
    POSITIVE,
    Settings,
    flag,
    setting,
)

VARIABLES = {
    "job_addresses": "KERAS_DISTRIBUTION_JOB_ADDRESSES",
    "num_processes": "KERAS_DISTRIBUTION_NUM_PROCESSES",
    "process_id": "KERAS_DISTRIBUTION_PROCESS_ID",
}
SPREAD = ("distribution", ["data_parallel"])
PORTS = range(1, 65_536)


@dataclasses.dataclass
class HostSettings(Settings):
    """Over what batches are spread: devices, hosts.

    The hosts are named as `keras.distribution.initialize` names them, and by
    its environment variables; a run may go on over others.
    """

    distribution: str = setting(
        "none",
        "over what batches are spread: one device, or all devices of all "
        "hosts; batches that are not full are then left out",
        distribution.STRATEGIES,
        later=True,
    )
    job_addresses: str | None = setting(
        None,
        "ADDRESS:PORT of the first host, or of all, with commas between",
        unless_given=f"${VARIABLES['job_addresses']}, or one host",
        only=SPREAD,
        of_start=True,
    )
    num_processes: int | None = setting(
        None,
        "how many hosts there are",
        check=POSITIVE,
        unless_given=f"${VARIABLES['num_processes']}, or the addresses'",
        only=SPREAD,
        of_start=True,
    )
    process_id: int | None = setting(
        None,
        "number of this host, 0 for the first, which writes",
        check=NOT_NEGATIVE,
        unless_given=f"${VARIABLES['process_id']}",
        only=SPREAD,
        of_start=True,
    )

    @property
    def writes(self):
        """Whether this process is the first of the hosts."""
        return places(self)[2] == 0

    def check(self):
        super().check()
        if self.distribution != "none":
            # Before a corpus is read, or a run begun.
            distribution.check_environment()
        places(self)


def places(settings):
    """Returns where a host stands among the others.

    Args:
        settings: `HostSettings`.

    Returns:
        Triple of the addresses, the number of hosts and that of this host;
        `(None, 1, 0)` without several hosts.

    Raises:
        ValueError: if something lacks or does not fit; it names the flag.
    """
    found, names = {}, {}
    for name, variable in VARIABLES.items():
        names[name] = flag(name)
        found[name] = getattr(settings, name)
        if found[name] is None and variable in os.environ:
            found[name], names[name] = os.environ[variable], f"${variable}"
    given = {
        names[name]: value for name, value in found.items() if value is not None
    }
    if all(value is None for value in found.values()):
        return None, 1, 0
    if settings.distribution == "none":
        raise ValueError(
            f"Several hosts need --distribution data_parallel. Received: "
            f"{given}"
        )
    addresses = (found["job_addresses"] or "").split(",")
    if found["num_processes"] is None and len(addresses) > 1:
        found["num_processes"] = len(addresses)
    for name, value in found.items():
        if value is None:
            raise ValueError(f"{names[name]} is missing. Received: {given}")
    for name in ("num_processes", "process_id"):
        try:
            found[name] = int(found[name])
        except ValueError:
            raise ValueError(
                f"{names[name]} must be a whole number. "
                f"Received: {found[name]!r}"
            ) from None
    count, index = found["num_processes"], found["process_id"]
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or int(port) not in PORTS:
            raise ValueError(
                f"{names['job_addresses']} must be ADDRESS:PORT, a port up to "
                f"{PORTS[-1]}, with commas between. "
                f"Received: {found['job_addresses']!r}"
            )
    if len(addresses) not in (1, count):
        raise ValueError(
            f"{names['job_addresses']} must be the first host's or one for "
            f"each of {names['num_processes']}. Received: {len(addresses)} "
            f"addresses, {count} hosts"
        )
    if not 0 <= index < count:
        raise ValueError(
            f"{names['process_id']} must be from 0 to {count - 1}, below "
            f"{names['num_processes']}. Received: {index}"
        )
    if count > 1 and keras.backend.backend() != "jax":
        raise ValueError(
            f"{distribution.ONE_HOST} Received: {count} hosts, backend "
            f"{keras.backend.backend()!r}"
        )
    return found["job_addresses"], count, index
