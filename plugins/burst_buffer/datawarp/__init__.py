"""burst_buffer/datawarp: Cray DataWarp, through dw_wlm_cli: its books, its stages, its answers."""
