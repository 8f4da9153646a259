-- A burst_buffer.lua for tests: it writes down its calls, and does what words on the directive lines say.
--
-- `FUNCTION_sleep=N` sleeps in a command, `FUNCTION_busy=N` in a loop; `FUNCTION_error=1` raises, `FUNCTION_rc=N`
-- returns a number, `FUNCTION_text=T` a text, `FUNCTION_nothing=1` nothing. A file `extra` has such words for all jobs,
-- `more_paths` what `paths` writes besides.
local FOLDER = '/var/bb'

local function contents(path)
  local file = path and io.open(path)
  if not file then return '' end
  local text = file:read('*a')
  file:close()
  return text
end

local function note(...)
  local file = assert(io.open(FOLDER .. '/calls', 'a'))
  file:write(table.concat({...}, ' '), '\n')
  file:close()
end

local function words_of(script)
  local words = {}
  for line in (contents(script) .. '\n#BB_LUA ' .. contents(FOLDER .. '/extra')):gmatch('[^\n]+') do
    if line:find('^#BB_LUA') then
      for key, value in line:gmatch('([%w_]+)=(%S+)') do words[key] = value end
    end
  end
  return words
end

local function act(name, script, ...)
  local words = words_of(script)
  local function word(what) return words[name .. '_' .. what] end
  note('begin', name, ...)
  if word('sleep') then os.execute('sleep ' .. word('sleep')) end
  if word('busy') then
    local over = os.time() + tonumber(word('busy'))
    while os.time() < over do end
  end
  if word('error') then
    note('end', name, 'luaerror')
    error('told to')
  end
  if word('nothing') then
    note('end', name, 'none')
    return
  end
  local rc = tonumber(word('rc') or '0')
  note('end', name, string.format('%d', rc))
  if word('text') then return rc, word('text') end
  return rc
end

function slurm_bb_pools()
  local quantity = contents(FOLDER .. '/quantity')
  return slurm.SUCCESS, '{"pools": [{"id": "pool1", "quantity": ' .. (quantity == '' and '100' or quantity) ..
    ', "granularity": 10}, {"id": "bytes", "quantity": 1024, "granularity": 1048576}]}'
end
function slurm_bb_job_process(script, ...) return act('job_process', script, script, ...) end
function slurm_bb_setup(id, uid, gid, pool, size, script, ...) return act('setup', script, id, uid, gid, pool, size, script) end
function slurm_bb_data_in(id, script, ...) return act('data_in', script, id, script) end
function slurm_bb_test_data_in(id, script, ...) return act('test_data_in', script, id, script) end
function slurm_bb_real_size(id, ...) return act('real_size', nil, id) end
function slurm_bb_paths(id, script, path, ...)
  local file = assert(io.open(path, 'w'))
  file:write('BB_PATH=/bb/' .. id .. '\nBB_MORE=a=b\n', contents(FOLDER .. '/more_paths'))
  file:close()
  return act('paths', script, id, script, path)
end
function slurm_bb_pre_run(id, script, ...) return act('pre_run', script, id, script) end
function slurm_bb_post_run(id, script, ...) return act('post_run', script, id, script) end
function slurm_bb_data_out(id, script, ...) return act('data_out', script, id, script) end
function slurm_bb_test_data_out(id, script, ...) return act('test_data_out', script, id, script) end
function slurm_bb_job_teardown(id, script, hurry, ...) return act('job_teardown', script, id, script, hurry) end
function slurm_bb_get_status(...) return slurm.SUCCESS, 'asked: ' .. table.concat({...}, ' ') end
