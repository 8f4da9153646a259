-- The table `slurm`, and records whose fields are read and written on the Python side.
local base, host, given = ...
local format, unpack, setmetatable, select, type, tonumber = string.format, table.unpack or unpack, base.setmetatable, select, type, tonumber
local tostring, raw_error = base.tostring, base.raw_error
slurm = {}
for name, value in pairs(given) do slurm[name] = value end
-- As Slurm's own: of several arguments the last is the text, and what is no text is "(null)".
local function text_of(...)
  local value = select('#', ...) > 0 and select(-1, ...) or nil
  return (type(value) == 'string' or type(value) == 'number') and tostring(value) or nil
end
local levels = {[0] = 'info', 'verbose', 'debug', 'debug2', 'debug3'}
function slurm.log(...)
  local level = select('#', ...) > 1 and tonumber((select(-2, ...))) or 0
  level = level < 0 and level > -1 and 0 or level - level % 1
  if level >= 0 then host.log(levels[level] or 'debug4', text_of(...) or '(null)') end
end
function slurm.error(...) host.log('error', text_of(...) or '(null)') end
-- As Slurm's own: the arguments are collected in a table, so that a nil at their end is lost.
local function formatted(...)
  local values = {...}
  return format(unpack(values))
end
for _, level in ipairs{'error', 'info', 'verbose', 'debug', 'debug2', 'debug3', 'debug4'} do
  slurm['log_' .. level] = function(...) host.log(level, formatted(...)) end
end
function slurm.time_str2mins(...) return host.minutes(text_of(...) or '') end

local function offer(name, f) -- a function of one kind of script alone
  if name == 'log_user' then
    slurm.log_user = function(...) host.user(formatted(...)) end
  elseif name == 'user_msg' then
    slurm.user_msg = function(...) host.user(text_of(...)) end
  elseif name == 'cli_store' then
    function slurm.cli_store(key, value)
      local kind = type(value)
      if kind ~= 'string' and kind ~= 'number' then
        raw_error("bad argument #2 to 'cli_store' (string expected, got " .. kind .. ')', 2)
      end
      f(tonumber(key) or 0, tostring(value))
    end
  elseif name == 'cli_retrieve' then
    function slurm.cli_retrieve(key) return f(tonumber(key) or 0) end
  else
    slurm[name] = f
  end
end
local function record(get, set, names)
  local meta = {}
  function meta.__index(_, key) return get(key) end
  meta.__newindex = set and function(_, key, value)
    local wrong = set(key, value)
    if wrong then raw_error(wrong, 2) end
  end
  return setmetatable({}, meta)
end
local function list(values, from) -- a table of what a Python side counts off
  local out = {}
  for at, value in ipairs(values) do out[at - 1 + (from or 1)] = value end
  return out
end
return offer, record, list
