"""The files that a scenario puts onto the simulated disk."""

from collections.abc import Mapping

from simctl.kernel.disk import Disk
from simctl.scenario.model import ConfEntry, FilesEntry, Scenario
from simctl.scenario.site.burst_buffer_conf import edited
from simctl.site import User
from simctl.wire.burst_buffer_conf import FOLDER, file_name, write_conf
from simctl.wire.conf.slurm_conf import can_checkpoint
from simctl.wire.hosts import CONTROLLER


class Files:
    """The files of a scenario on the simulated disk, burst_buffer.conf among them."""

    def __init__(self, scenario: Scenario, disk: Disk, users: Mapping[str, User]) -> None:
        self._scenario = scenario
        self._disk = disk
        self._users = users
        self.burst_buffers = {name: dict(keys) for name, keys in scenario.burst_buffer_conf.items()}
        """What stands in each burst_buffer.conf at present, by its plugin."""

    def own_folders(self) -> None:
        """Give people their homes, and SlurmUser the folders that daemons write to."""
        conf = self._scenario.slurm_conf
        for user in self._users.values():
            self._disk.own(user.home, user.uid)
        slurm_uid = self._users[conf.slurm_user].uid
        for host in (CONTROLLER, conf.backup_controller):
            self._disk.own(conf.state_save_location, slurm_uid, host or CONTROLLER)
        if can_checkpoint(conf):
            for host in (CONTROLLER, *(node.name for node in self._scenario.nodes)):
                self._disk.own(conf.job_checkpoint_dir, slurm_uid, host, shared=True)

    def place(self) -> None:
        """Put files into each user's folder, and those with a whole path onto every host.

        What lies in a user's folder by its whole path is theirs.
        """
        for name, text in self._scenario.files.items():
            owner = next((u for u in self._users.values() if name.startswith(f"{u.home}/")), None)
            if owner is not None:
                self._disk.write(name, text, owner.home, uid=owner.uid, by_hand=True)
                continue
            if name.startswith("/"):
                for host in self._all_hosts():
                    self._disk.write(name, text, host=host, by_hand=True)
                continue
            for user in self._users.values():
                self._disk.write(name, text, user.home, uid=user.uid, by_hand=True)
        for name, text in self._scenario.lua_scripts.items():
            for host in self._all_hosts():
                self._disk.write(f"{FOLDER}/{name}", text, host=host, by_hand=True)
        self._write_burst_buffer_conf()

    def write(self, entry: FilesEntry) -> None:
        """Write a user's files, and those of root with a whole path onto every host."""
        user = self._users[entry.user]
        for name, text in entry.files.items():
            for host in self._all_hosts() if name.startswith("/") else ("login",):
                self._disk.write(name, text, user.home, uid=user.uid, host=host, by_hand=True)

    def edit_burst_buffer_conf(self, entry: ConfEntry) -> None:
        """Write keys of burst_buffer.conf anew; daemons find them when they read it again."""
        for name, keys in entry.burst_buffer_conf.items():
            for each in (name,) if name or not self.burst_buffers else tuple(self.burst_buffers):
                self.burst_buffers[each] = edited(self.burst_buffers.get(each, {}), keys)
        self._write_burst_buffer_conf()

    def _write_burst_buffer_conf(self) -> None:
        for name, keys in self.burst_buffers.items():
            path = f"{FOLDER}/{file_name(name)}"
            for host in (CONTROLLER, self._scenario.slurm_conf.backup_controller):
                if host:
                    self._disk.write(path, write_conf(keys), host=host, by_hand=True)

    def _all_hosts(self) -> tuple[str, ...]:
        backup = self._scenario.slurm_conf.backup_controller
        hosts = ("login", "slurmctld", *(node.name for node in self._scenario.nodes))
        return (*hosts, backup) if backup else hosts
