"""Which prototypes a compiled plugin has: the guide's, or those of Slurm 17.11 to 19.05.

Slurm 17.11, 18.08 and 19.05 call switch plugins with other arguments than the guide's, and some
functions by other names. Checkpoint plugins have the guide's prototypes in all of them.
"""

from typing import Final

from simctl.plugins.compiled import elf

GUIDE: Final = "guide"
LATER: Final = "Slurm 17.11 to 19.05"

_VERSIONED: Final = 0xFFFF
"""Up to here a plugin_version is a number of the plugin interface, else a version of Slurm."""

_OLDEST: Final = (17, 11)
_NEWEST: Final = (19, 5)
_PROTOCOLS: Final = {(17, 11): 32 << 8, (18, 8): 33 << 8, (19, 5): 34 << 8}
"""What each version passes as protocol_version."""

_DECLARED: Final = """
    int switch_p_libstate_restore(char *dir_name, bool recover);
    int switch_p_alloc_jobinfo(switch_jobinfo_t **switch_job, uint32_t job_id, uint32_t step_id);
    int switch_p_build_jobinfo(switch_jobinfo_t *switch_job, slurm_step_layout_t *step_layout,
                               char *network);
    int switch_p_duplicate_jobinfo(switch_jobinfo_t *switch_job, switch_jobinfo_t **copy);
    int switch_p_pack_jobinfo(switch_jobinfo_t *switch_job, Buf buffer, uint16_t protocol_version);
    int switch_p_unpack_jobinfo(switch_jobinfo_t **switch_job, Buf buffer,
                                uint16_t protocol_version);
    int switch_p_job_init(stepd_step_rec_t *slurmd_job);
    int switch_p_job_postfini(stepd_step_rec_t *slurmd_job);
    int switch_p_pack_node_info(switch_node_info_t *switch_node, Buf buffer,
                                uint16_t protocol_version);
    int switch_p_unpack_node_info(switch_node_info_t **switch_node, Buf buffer,
                                  uint16_t protocol_version);
    int switch_p_free_node_info(switch_node_info_t **switch_node);
    void switch_p_job_suspend_info_pack(void *suspend_info, Buf buffer, uint16_t protocol_version);
    int switch_p_job_suspend_info_unpack(void **suspend_info, Buf buffer,
                                         uint16_t protocol_version);
"""
_OF_LATER: Final = {
    each.partition("(")[0].split()[-1]: " ".join(each.split())
    for each in _DECLARED.split(";")
    if each.strip()
}
"""The functions whose prototypes are others than the guide's, by their names in C."""

_NAMES: Final = {"switch_p_copy_jobinfo": "switch_p_duplicate_jobinfo"}
"""The functions that have another name."""

_GONE: Final = frozenset(
    {
        "switch_p_no_frag",
        "switch_p_sprint_jobinfo",
        "switch_p_get_data_jobinfo",
        "switch_p_get_errno",
        "switch_p_strerror",
    }
)
"""The guide's functions that a plugin need not have there."""


def name_of(function: str, prototypes: str) -> str:
    """Return by which name a plugin exports a function of the guide."""
    return _NAMES.get(function, function) if prototypes == LATER else function


def of(function: str, guides: str, prototypes: str) -> str:
    """Return the prototype of a function whose declaration in the guide is *guides*."""
    if prototypes == GUIDE:
        return guides
    return _OF_LATER.get(name_of(function, prototypes), guides)


def may_lack(function: str, prototypes: str) -> bool:
    """Return whether a plugin may do without a function of the guide."""
    return prototypes == LATER and function in _GONE


def detect(plugin_class: str, library: elf.Library) -> tuple[str, list[str]]:
    """Return which prototypes a plugin has, and what is wrong with its version."""
    version = library.number("plugin_version") or 0
    slurm = (version >> 16, version >> 8 & 0xFF) if version > _VERSIONED else None
    if slurm is not None and not _OLDEST <= slurm <= _NEWEST:
        told = (
            f"plugin_version {version} is that of Slurm {slurm[0]}.{slurm[1]:02d}, whose "
            "prototypes are not modelled; those of Slurm 17.11 to 19.05 are, and those of the "
            "guides with a number of the plugin interface, up to 65535"
        )
        return GUIDE, [told]
    if plugin_class != "switch":
        return GUIDE, []
    has = {name for name in ("copy", "duplicate") if _has(library, f"switch_p_{name}_jobinfo")}
    if has == {"duplicate"} or (has != {"copy"} and slurm is not None):
        return LATER, []
    return GUIDE, []


def _has(library: elf.Library, name: str) -> bool:
    return library.exported(name) is not None


def protocol_version(plugin_version: int, given: int) -> int:
    """Return what the Slurm that a plugin was built for passes as protocol_version."""
    return _PROTOCOLS.get((plugin_version >> 16, plugin_version >> 8 & 0xFF), given)
