-- What a script may not undo: bounds, a steady order of tables, and waits that virtual time sees.
--
-- Runs first in every state. `host` holds functions of the Python side; `options` has `version` (501 to
-- 504), `steps` (how many instructions a call has, in units of `stride`), `stride` and `order` (0, or
-- the seed by which tables are gone through). Everything is kept in locals: a script may overwrite
-- whatever is global.
local host, options = ...
local version = options.version
local raw_error, raw_pcall, raw_tostring, raw_next, raw_pairs = error, pcall, tostring, next, pairs
local type, select, rawget, rawset, rawequal = type, select, rawget, rawset, rawequal
local raw_setmetatable, raw_getmetatable = setmetatable, debug.getmetatable
local unpack = table.unpack or unpack
local create, resume, yield, status = coroutine.create, coroutine.resume, coroutine.yield, coroutine.status
local running, sethook, getinfo = coroutine.running, debug.sethook, debug.getinfo
local format, sub, gsub, gmatch, find, match, rep = string.format, string.sub, string.gsub, string.gmatch, string.find, string.match, string.rep
local floor, abs, concat, sort, ipairs, tonumber = math.floor, math.abs, table.concat, table.sort, ipairs, tonumber

-- An end that no pcall holds up. `why` is a sentence, `code` the number of os.exit.
local ending = {}
local function is_end(what) return rawequal(what, ending) end
local function line_of(thread) -- where a script is: the first frame that is not ours
  for at = 0, 40 do
    local where
    if thread == nil then where = getinfo(at + 3, 'Sl') else where = getinfo(thread, at, 'Sl') end
    if where == nil then return nil end
    if where.currentline > 0 and sub(where.source, 1, 1) ~= '=' then return where.short_src .. ':' .. where.currentline end
  end
end
local function finish(why, code)
  if ending.why == nil and ending.code == nil then
    ending.why, ending.code, ending.where = why, code, line_of()
  end
  raw_error(ending, 0)
end
-- An error of a library of ours is told as one of C's is: with the line of the script.
local function placed(what, thread)
  if type(what) ~= 'string' then return what end
  local rest = match(what, '^simctl/%a+:%d+: (.*)$')
  if rest == nil then return what end
  local where = line_of(thread)
  return where and where .. ': ' .. rest or rest
end

-- Instructions are counted in all coroutines together.
local left = options.steps
local function count()
  left = left - 1
  if left <= 0 then finish('ran for too many instructions without coming back') end
  -- A few instructions may be much work, as where a long text grows by letters: the watchdog, or Ctrl-C, raises here.
  if not raw_pcall(host.breathe) then finish('took too long on this machine') end
end
-- What a function of C's goes through in one step counts as well: four bytes as an instruction.
local weight = 0
local function spend(bytes)
  weight = weight + bytes
  while weight > 4 * options.stride do
    weight = weight - 4 * options.stride
    count()
  end
end
local function watched(f)
  local thread = create(f)
  sethook(thread, count, '', options.stride)
  return thread
end

-- Waits: `block` hands over to the Python side, through all coroutines of the script.
local BLOCK = {}
local drivers = raw_setmetatable({}, {__mode = 'k'})
local protected = raw_setmetatable({}, {__mode = 'k'})
local blocks = 0
local function block(...)
  blocks = blocks + 1
  if blocks > 100000 then finish('waited a hundred thousand times without coming back') end
  return yield(BLOCK, ...)
end
local function through(thread, ok, token, ...)
  if not ok and is_end(token) then raw_error(token, 0) end
  if ok and rawequal(token, BLOCK) then return through(thread, resume(thread, yield(BLOCK, ...))) end
  if not ok then return false, placed(token, thread) end
  return true, token, ...
end
function coroutine.create(f)
  if type(f) ~= 'function' then raw_error("bad argument #1 to 'create' (function expected)", 2) end
  return watched(f)
end
function coroutine.resume(thread, ...)
  if type(thread) ~= 'thread' then raw_error("bad argument #1 to 'resume' (coroutine expected)", 2) end
  return through(thread, resume(thread, ...))
end
function coroutine.wrap(f)
  local thread = coroutine.create(f)
  local function values(ok, ...)
    if not ok then raw_error((...), 0) end
    return ...
  end
  return function(...) return values(through(thread, resume(thread, ...))) end
end
function coroutine.yield(...)
  local thread = running()
  if thread == nil or drivers[thread] then raw_error('attempt to yield from outside a coroutine', 2) end
  if protected[thread] then raw_error('attempt to yield across metamethod/C-call boundary', 2) end
  return yield(...)
end
function coroutine.running()
  local thread, main = running()
  if version == 501 then return not drivers[thread] and thread or nil end
  return thread, main or drivers[thread] or false
end
if coroutine.isyieldable then
  function coroutine.isyieldable() return not drivers[(running())] end
end

-- Errors: an end goes through, and no handler of a script's runs where nothing is counted.
local function passed(ok, why, ...)
  if ok then return true, why, ... end
  if is_end(why) then raw_error(why, 0) end
  return false, placed(why)
end
if version == 501 then -- cannot yield across a pcall of C's: what is protected is a coroutine
  function pcall(f, ...)
    if type(f) ~= 'function' then return raw_pcall(f, ...) end
    local thread = watched(f)
    protected[thread] = true
    return through(thread, resume(thread, ...))
  end
else
  function pcall(...) return passed(raw_pcall(...)) end
end
local pcall = pcall
function xpcall(f, handler, ...)
  local function settle(ok, ...)
    if ok then return true, ... end
    return false, handler((...))
  end
  if version == 501 then return settle(pcall(f)) end
  return settle(pcall(f, ...))
end
function setmetatable(t, meta) -- no finalizers: they would run where nothing is counted
  local gc = type(meta) == 'table' and rawget(meta, '__gc') or nil
  if gc == nil then return raw_setmetatable(t, meta) end
  rawset(meta, '__gc', nil)
  raw_setmetatable(t, meta)
  rawset(meta, '__gc', gc)
  return t
end
newproxy = nil

-- Names instead of addresses, which differ from one run of Python to the next.
local serials = raw_setmetatable({}, {__mode = 'k'})
local serial = 0
local function number_of(value)
  if serials[value] == nil then
    serial = serial + 1
    serials[value] = serial
  end
  return serials[value]
end
local function address(value) return format('0x%08x', 0x5580000 + number_of(value) * 32) end
local function tostring(value)
  local kind = type(value)
  if kind ~= 'table' and kind ~= 'function' and kind ~= 'thread' and kind ~= 'userdata' then return raw_tostring(value) end
  local meta = raw_getmetatable(value)
  if type(meta) == 'table' then
    if rawget(meta, '__tostring') ~= nil then return meta.__tostring(value) end
    if version >= 503 and type(rawget(meta, '__name')) == 'string' then kind = meta.__name end
  end
  return kind .. ': ' .. address(value)
end
_G.tostring = function(...)
  if select('#', ...) == 0 then raw_error("bad argument #1 to 'tostring' (value expected)", 2) end
  return tostring((...))
end
function string.format(text, ...)
  if type(text) ~= 'string' or version == 501 then return format(text, ...) end
  local given, at = {...}, 0
  for kind in gmatch(text, '%%[-+ #0-9.]*([%a%%])') do
    if kind ~= '%' then
      at = at + 1
      local value = given[at]
      local object = type(value) == 'table' or type(value) == 'function' or type(value) == 'thread' or type(value) == 'userdata'
      if kind == 's' and object then given[at] = tostring(value) end
      if kind == 'p' then
        given[at] = object and address(value) or '(null)'
        text = gsub(text, '%%([-0-9]*)p', '%%%1s', 1)
      end
    end
  end
  return format(text, unpack(given, 1, select('#', ...)))
end

-- Tables are gone through in an order of their own: by kind, then by value.
local ranks = {number = 1, string = 2, boolean = 3}
local function before(a, b)
  local x, y = ranks[type(a)] or 4, ranks[type(b)] or 4
  if x ~= y then return x < y end
  if x <= 2 then return a < b end
  if x == 3 then return not a and b end
  return number_of(a) < number_of(b)
end
local chance = options.order % 2147483647
local function shuffle(keys)
  for at = #keys, 2, -1 do
    chance = (chance * 16807 + 1) % 2147483647
    local other = chance % at + 1
    keys[at], keys[other] = keys[other], keys[at]
  end
end
local function keys_of(t)
  local keys, n = {}, 0
  for key in raw_next, t do
    n = n + 1
    keys[n] = key
  end
  sort(keys, before)
  if options.order ~= 0 then shuffle(keys) end
  return keys
end
local walks = raw_setmetatable({}, {__mode = 'k'})
function next(t, key)
  if type(t) ~= 'table' then raw_error("bad argument #1 to 'next' (table expected, got " .. type(t) .. ')', 2) end
  local walk = walks[t]
  if key == nil then
    if raw_next(t) == nil then return nil end
    walk = {keys = keys_of(t), at = {}}
    for at, each in ipairs(walk.keys) do walk.at[each] = at end
    walks[t] = walk
  end
  local at = walk and (key == nil and 0 or walk.at[key])
  if at == nil then raw_error("invalid key to 'next'", 2) end
  repeat
    at = at + 1
    key = walk.keys[at]
  until key == nil or rawget(t, key) ~= nil
  if key == nil then
    walks[t] = nil
    return nil
  end
  return key, rawget(t, key)
end
local next = next
function pairs(t)
  local meta = raw_getmetatable(t)
  if version > 501 and type(meta) == 'table' and rawget(meta, '__pairs') ~= nil then
    local step, state, first = meta.__pairs(t)
    return step, state, first
  end
  if type(t) ~= 'table' then raw_error("bad argument #1 to 'for iterator' (table expected, got " .. type(t) .. ')', 2) end
  local keys, at = keys_of(t), 0
  return function()
    local key
    repeat
      at = at + 1
      key = keys[at]
    until key == nil or rawget(t, key) ~= nil
    if key ~= nil then return key, rawget(t, key) end
  end, t, nil
end

-- Patterns that may take for ever are matched where steps are counted.
local function costly(subject, pattern, anchored)
  local loops = 0
  for _ in gmatch(pattern, '[*+?-]') do loops = loops + 1 end
  if loops > 60 then return true end
  return loops > 0 and (#subject + 2) ^ (loops + (anchored and 0 or 1)) > 1e9
end
local function text(value) return type(value) == 'number' and raw_tostring(value) or value end
local function are_texts(a, b) return type(a) == 'string' and type(b) == 'string' end
local function slowly(subject, pattern, init)
  local found = {host.match(subject, pattern, init)}
  if found[1] == 'endless' then finish('a pattern took too many steps: ' .. pattern) end
  if found[1] == 'malformed' then raw_error(found[2], 3) end
  return unpack(found)
end
local function start_of(subject, init)
  init = init or 1
  if init < 0 then init = #subject + init + 1 end
  return init < 1 and 1 or init
end
local function captures(subject, from, to, ...)
  if select('#', ...) == 0 then return sub(subject, from, to) end
  return ...
end
local function looked_through(s, p)
  if type(s) == 'string' then spend(#s) end
  return s, p
end
function string.find(s, p, init, plain)
  s, p = looked_through(text(s), text(p))
  if plain or not are_texts(s, p) or not costly(s, p, sub(p, 1, 1) == '^') then return find(s, p, init, plain) end
  return slowly(s, p, start_of(s, init))
end
function string.match(s, p, init)
  s, p = looked_through(text(s), text(p))
  if not are_texts(s, p) or not costly(s, p, sub(p, 1, 1) == '^') then return match(s, p, init) end
  local function values(from, ...)
    if from == nil then return nil end
    return captures(s, from, ...)
  end
  return values(slowly(s, p, start_of(s, init)))
end
function string.gmatch(s, p, ...)
  s, p = looked_through(text(s), text(p))
  if not are_texts(s, p) or not costly(s, p, false) then return gmatch(s, p, ...) end
  local at = 1
  local function values(from, to, ...)
    if from == nil then return nil end
    at = to >= from and to + 1 or to + 2
    return captures(s, from, to, ...)
  end
  return function()
    if at > #s + 1 then return nil end
    return values(slowly(s, p, at))
  end
end
string.gfind = version == 501 and string.gmatch or nil
function string.gsub(s, p, by, most)
  s, p = looked_through(text(s), text(p))
  if not are_texts(s, p) or not costly(s, p, sub(p, 1, 1) == '^') then return gsub(s, p, by, most) end
  local out, at, n = {}, 1, 0
  local function replaced(from, to, ...)
    if from == nil then return false end
    local whole, first = sub(s, from, to), captures(s, from, to, ...)
    local new
    if type(by) == 'table' then new = by[first]
    elseif type(by) == 'function' then new = by(captures(s, from, to, ...))
    else
      local all = {...}
      new = gsub(text(by), '%%(.)', function(c)
        if c == '0' then return whole end
        if find(c, '^%d') then return all[tonumber(c)] or (c == '1' and whole) or '' end
        return c
      end)
    end
    out[#out + 1] = sub(s, at, from - 1)
    out[#out + 1] = new and raw_tostring(new) or whole
    n = n + 1
    at = to + 1
    if to < from then
      out[#out + 1] = sub(s, at, at)
      at = at + 1
    end
    return sub(p, 1, 1) ~= '^'
  end
  while at <= #s + 1 and (most == nil or n < most) and replaced(slowly(s, p, at)) do end
  out[#out + 1] = sub(s, at)
  return concat(out), n
end
local function made(s)
  spend(#s)
  return s
end
function string.rep(s, n, sep)
  if text(s) == '' and (sep == nil or sep == '') then return '' end
  return made(rep(s, n, sep))
end
for _, name in ipairs{'upper', 'lower', 'reverse', 'sub'} do
  local f = string[name]
  string[name] = function(...) return made(f(...)) end
end
function table.concat(...) return made(concat(...)) end
string.dump = function() raw_error('unable to dump given function', 2) end
if table.move then
  local move = table.move
  function table.move(a, from, to, ...)
    if type(from) == 'number' and type(to) == 'number' and to - from > 1e7 then raw_error('too many elements to move', 2) end
    return move(a, from, to, ...)
  end
end
local insert, remove = table.insert, table.remove
function table.remove(t, ...)
  if select('#', ...) > 0 and type(t) == 'table' then spend(#t) end
  return remove(t, ...)
end
function table.insert(t, at, ...)
  if select('#', ...) == 1 and type(t) == 'table' then spend(#t) end
  if select('#', ...) == 1 and type(at) == 'number' and type(t) == 'table' and (at < 1 or at > #t + 1) then
    if version > 501 or at < -1e6 then raw_error("bad argument #2 to 'insert' (position out of bounds)", 2) end
  end
  return insert(t, at, ...)
end

-- Loading: texts alone, never compiled code, which could do anything.
local load_string = version == 501 and loadstring or load
local function load_text(chunk, name, mode, ...)
  if sub(chunk, 1, 1) == '\27' then return nil, 'attempt to load a binary chunk' end
  if version == 501 then return load_string(chunk, name) end
  return load_string(chunk, name, 't', ...)
end
function load(chunk, name, ...)
  if type(chunk) == 'function' then
    local parts = {}
    repeat
      local part = chunk()
      parts[#parts + 1] = part
    until part == nil or part == ''
    chunk, name = concat(parts), name or '=(load)'
  elseif version == 501 then
    raw_error("bad argument #1 to 'load' (function expected, got " .. type(chunk) .. ')', 2)
  end
  return load_text(chunk, name or chunk, ...)
end
if version == 501 then
  function loadstring(chunk, name) return load_text(text(chunk), name or chunk) end
end

-- Chance is the same on every machine.
local seed = 1
function math.randomseed(n) seed = floor(abs(tonumber(n) or 1)) % 2147483646 + 1 end
function math.random(low, high)
  seed = seed * 16807 % 2147483647
  local drawn = (seed - 1) / 2147483646
  if low == nil then return drawn end
  if high == nil then low, high = 1, low end
  if low > high then raw_error("bad argument #1 to 'random' (interval is empty)", 2) end
  return low + floor(drawn * (high - low + 1))
end
function collectgarbage(what)
  if what == 'count' then return 64.0, 0 end
  return 0
end
gcinfo = nil

local whole_debug = debug
debug = {
  traceback = whole_debug.traceback,
  getinfo = function(...) -- not the functions themselves: what is below a script's own is not its business
    local found = getinfo(...)
    if found ~= nil then found.func = nil end
    return found
  end,
  sethook = function() end,
  gethook = function() return nil end,
  getmetatable = function(value) return type(value) == 'table' and raw_getmetatable(value) or nil end,
  setmetatable = function(value, meta) return type(value) == 'table' and setmetatable(value, meta) or value end,
}
for key in raw_next, whole_debug do
  if debug[key] == nil then
    local name = key
    debug[key] = function() raw_error('debug.' .. name .. ' is not there in simctl', 2) end
  end
end
-- What the libraries were before is reached from nowhere, the registry included.
local bare_package = package
for _, library in raw_next, {io, os, whole_debug, bare_package} do
  local names = {}
  for key in raw_next, library do names[#names + 1] = key end
  for _, key in ipairs(names) do
    if not (library == os and (key == 'date' or key == 'difftime')) then rawset(library, key, nil) end
  end
end
python = nil
if warn then warn = function(...) host.log('debug', concat({...})) end end

-- For the Python side: a call is begun, then stepped through, from one wait to the next.
local threads, made = {}, 0
local function start(f)
  made = made + 1
  local thread = watched(f)
  drivers[thread] = true
  threads[made] = thread
  left, blocks = options.steps, 0
  return made
end
local function told(thread, ok, ...)
  if ok then return 'done', select('#', ...), ... end
  local first = ...
  if is_end(first) then
    local why, code, where = ending.why, ending.code, ending.where
    ending.why, ending.code, ending.where = nil, nil, nil
    if code ~= nil then return 'exit', code end
    return 'endless', why, where
  end
  return 'failed', (type(first) == 'string' or type(first) == 'number') and placed(first, thread) or nil
end
local function step(id, ...)
  local thread = threads[id]
  local function settle(ok, ...)
    if ok and status(thread) ~= 'dead' then return 'wait', select(2, ...) end
    threads[id] = nil
    return told(thread, ok, ...)
  end
  return settle(resume(thread, ...))
end
return {
  block = block, finish = finish, load_text = load_text, start = start, step = step, tostring = tostring,
  raw_error = raw_error, date = os.date, keys_of = keys_of, setmetatable = raw_setmetatable,
}
