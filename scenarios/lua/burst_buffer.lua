-- Stages with a command of the site; what a job wants stands on its directive lines.

local function wishes(script)
  local found = {}
  for line in io.lines(script) do
    if line:find('^#BB_LUA') then
      for key, value in line:gmatch('(%w+)=(%S+)') do found[key] = value end
    end
  end
  return found
end

local function stage(what, from, to)
  slurm.log_info('%s: %s to %s', what, from, to)
  if os.execute('/usr/bin/stage ' .. from .. ' ' .. to) ~= 0 then
    return slurm.ERROR, what .. ' of ' .. from .. ' failed'
  end
  return slurm.SUCCESS
end

local function dir_of(id)
  return '/fast/' .. id
end

function slurm_bb_pools()
  return slurm.SUCCESS, '{"pools": [{"id": "fast", "quantity": 100, "granularity": 10}]}'
end

function slurm_bb_job_process(script)
  local wants = wishes(script)
  if (wants['in'] or wants.out) and not wants.pool then
    return slurm.ERROR, 'a job that stages names a pool'
  end
  return slurm.SUCCESS
end

function slurm_bb_setup(id, uid, gid, pool, size, script)
  return slurm.SUCCESS
end

function slurm_bb_data_in(id, script)
  local from = wishes(script)['in']
  if from then return stage('stage-in', from, dir_of(id)) end
end

function slurm_bb_real_size(id)
  return slurm.SUCCESS, '0'
end

function slurm_bb_paths(id, script, path)
  local file = assert(io.open(path, 'w'))
  file:write('BB_DIR=', dir_of(id), '\n')
  file:close()
end

function slurm_bb_pre_run(id, script)
end

function slurm_bb_post_run(id, script)
end

function slurm_bb_data_out(id, script)
  local to = wishes(script).out
  if to then return stage('stage-out', dir_of(id), to) end
end

function slurm_bb_job_teardown(id, script, hurry)
end

function slurm_bb_get_status(what)
  if what ~= 'volumes' then return slurm.ERROR end
  return slurm.SUCCESS, 'all is well'
end
