-- Does what a job's directive line says: `fail=FUNCTION`, `slow=FUNCTION` (a minute in a command), `give=FUNCTION` (256).

local function act(name, script)
  for line in io.lines(script) do
    if line:find('^#BB_LUA') then
      if line:find('slow=' .. name, 1, true) then os.execute('sleep 60') end
      if line:find('fail=' .. name, 1, true) then return slurm.ERROR, 'told to' end
      if line:find('give=' .. name, 1, true) then return 256 end
    end
  end
  return slurm.SUCCESS
end

function slurm_bb_pools()
  return slurm.SUCCESS, '{"pools": [{"id": "fast", "quantity": 100, "granularity": 1}]}'
end
function slurm_bb_job_process(script) return act('job_process', script) end
function slurm_bb_setup(id, uid, gid, pool, size, script) return act('setup', script) end
function slurm_bb_data_in(id, script) return act('data_in', script) end
function slurm_bb_real_size(id) return slurm.SUCCESS, '0' end
function slurm_bb_paths(id, script, path) return act('paths', script) end
function slurm_bb_pre_run(id, script) return act('pre_run', script) end
function slurm_bb_post_run(id, script) return act('post_run', script) end
function slurm_bb_data_out(id, script) return act('data_out', script) end
function slurm_bb_job_teardown(id, script, hurry) return slurm.SUCCESS end
function slurm_bb_get_status(...) return slurm.SUCCESS, '' end
