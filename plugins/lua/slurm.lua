-- The table `slurm`, and records whose fields are read and written on the Python side.
local base, host, given = ...
local format, unpack, setmetatable, select, type = string.format, table.unpack or unpack, base.setmetatable, select, type
local tostring, raw_error = base.tostring, base.raw_error
slurm = {}
for name, value in pairs(given) do slurm[name] = value end
local function text_of(name, at, value)
  if type(value) ~= 'string' and type(value) ~= 'number' then
    raw_error("bad argument #" .. at .. " to '" .. name .. "' (string expected, got " .. (value == nil and 'no value' or type(value)) .. ')', 3)
  end
  return tostring(value)
end
local levels = {[0] = 'info', 'verbose', 'debug', 'debug2', 'debug3'}
function slurm.log(level, text)
  if type(level) ~= 'number' then raw_error("bad argument #1 to 'log' (number expected)", 2) end
  host.log(level < 0 and 'info' or levels[level] or 'debug4', text_of('log', 2, text))
end
function slurm.error(text) host.log('error', text_of('error', 1, text)) end
-- As Slurm's own: the arguments are collected in a table, so that a nil at their end is lost.
local function formatted(...)
  local values = {...}
  return format(unpack(values))
end
for _, level in ipairs{'error', 'info', 'verbose', 'debug', 'debug2', 'debug3', 'debug4'} do
  slurm['log_' .. level] = function(...) host.log(level, formatted(...)) end
end
function slurm.time_str2mins(text) return host.minutes(text_of('time_str2mins', 1, text)) end

local function offer(name, f) -- a function of one kind of script alone
  if name == 'log_user' then
    slurm.log_user = function(...) host.user(formatted(...)) end
  else
    slurm[name] = f
  end
end
local function record(get, set, names)
  local meta = {}
  function meta.__index(_, key) return get(key) end
  function meta.__newindex(_, key, value)
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
