-- The libraries that reach out: files on the simulated disk, commands, the clock, modules.
local base, host, options = ...
local block, finish, load_text, raw_error = base.block, base.finish, base.load_text, base.raw_error
local version = options.version
local type, select, tostring, tonumber, pcall, floor = type, select, base.tostring, tonumber, pcall, math.floor
local sub, find, match, gsub, gmatch, concat, byte = string.sub, string.find, string.match, string.gsub, string.gmatch, table.concat, string.byte
local unpack, setmetatable, getmetatable, rawget = table.unpack or unpack, setmetatable, getmetatable, rawget
local format = string.format

-- Files. What is written is held until it is flushed, or the call is over.
local File = {__name = 'FILE*'}
File.__index = File
local open_files = {}
function File.__tostring(f) return f.closed and 'file (closed)' or 'file (' .. f.name .. ')' end
local opened = 0
local function new_file(given)
  opened = opened + 1
  given.at, given.name = given.at or 1, format('0x%08x', 0x7f0000 + opened * 32)
  open_files[given] = true
  return setmetatable(given, File)
end
local function check(f)
  if getmetatable(f) ~= File then raw_error("bad argument #1 (FILE* expected, got " .. type(f) .. ')', 3) end
  if f.closed then raw_error('attempt to use a closed file', 3) end
end
local function fill(f) -- what a command has written is there once it has ended
  if f.command and not f.written then
    if f.result == nil then f.result = {block('shell', f.command, '')} end
    f.text, f.command = f.result[2], nil
  end
end
local function read_one(f, what)
  if type(what) == 'number' then
    if what == 0 then return f.at <= #f.text and '' or nil end
    if f.at > #f.text then return nil end
    local piece = sub(f.text, f.at, f.at + what - 1)
    f.at = f.at + #piece
    return piece
  end
  local kind = match(what, '^%*?(%a)')
  if kind == 'a' then
    local piece = sub(f.text, f.at)
    f.at = #f.text + 1
    return piece
  end
  if kind == 'n' then
    local from, to = find(f.text, '^%s*[-+]?0?[xX]?[%x.]+[eEpP]?[-+]?%d*', f.at)
    if from == nil then return nil end
    f.at = to + 1
    return tonumber(sub(f.text, from, to))
  end
  if kind ~= 'l' and kind ~= 'L' then raw_error("bad argument #1 to 'read' (invalid format)", 3) end
  if f.at > #f.text then return nil end
  local stop = find(f.text, '\n', f.at, true)
  local piece = sub(f.text, f.at, stop == nil and #f.text or (kind == 'L' and stop or stop - 1))
  f.at = stop == nil and #f.text + 1 or stop + 1
  return piece
end
function File.read(f, ...)
  check(f)
  if f.folder then return nil, 'Is a directory', 21 end
  if not f.readable then return nil, 'Bad file descriptor', 9 end
  fill(f)
  local n = select('#', ...)
  if n == 0 then return read_one(f, 'l') end
  local out = {}
  for at = 1, n do
    out[at] = read_one(f, (select(at, ...)))
    if out[at] == nil then return unpack(out, 1, at) end
  end
  return unpack(out, 1, n)
end
function File.lines(f, ...)
  check(f)
  if f.readable then fill(f) end
  local what = {...}
  if #what == 0 then what[1] = 'l' end
  return function()
    if f.closed then raw_error('file is already closed', 2) end
    local found = {File.read(f, unpack(what))}
    if found[1] == nil and f.closes then File.close(f) end
    return unpack(found)
  end
end
function File.write(f, ...)
  check(f)
  if not f.writable then return nil, 'Bad file descriptor', 9 end
  local pieces = {}
  for at = 1, select('#', ...) do
    local piece = select(at, ...)
    if type(piece) ~= 'string' and type(piece) ~= 'number' then
      raw_error("bad argument #" .. at .. " to 'write' (string expected, got " .. (piece == nil and 'nil' or type(piece)) .. ')', 2)
    end
    pieces[at] = tostring(piece)
  end
  local text = concat(pieces)
  if f.echo then
    host.print(f.echo, text)
  elseif f.appends then
    f.held = (f.held or '') .. text
  else
    f.text = sub(f.text, 1, f.at - 1) .. text .. sub(f.text, f.at + #text)
    f.at = f.at + #text
    f.dirty = true
  end
  return version == 501 and true or f
end
local function flush(f)
  local ok, why, number = true, nil, nil
  if f.held and f.path then
    ok, why, number = host.append(f.path, f.held)
    f.held = nil
  elseif f.dirty and f.path then
    ok, why, number = host.write(f.path, f.text)
    f.dirty = nil
  end
  if not ok then return nil, why, number end
  return version == 501 and true or f
end
function File.flush(f)
  check(f)
  return flush(f)
end
local function ended(status) -- how os.execute and the close of a popen tell it
  if version == 501 then return status end
  local signal = status % 128
  if signal ~= 0 then return nil, 'signal', signal end
  local code = floor(status / 256)
  return code == 0 and true or nil, 'exit', code
end
function File.close(f)
  check(f)
  if f.echo then return nil, 'cannot close standard file', 1 end
  f.closed, open_files[f] = true, nil
  if f.written then
    local status = block('shell', f.written, f.text)
    if version == 501 then return true end
    return ended(status)
  end
  if f.shell then
    f.closed = nil
    fill(f)
    f.closed = true
    if version == 501 then return true end
    return ended(f.result[1])
  end
  local ok, why, number = flush(f)
  if ok then return true end
  return ok, why, number
end
File.__close, File.__gc = function(f) if not f.closed then File.close(f) end end, nil
function File.seek(f, whence, offset)
  check(f)
  whence, offset = whence or 'cur', offset or 0
  local from = whence == 'set' and 0 or whence == 'end' and #f.text or f.at - 1
  if from + offset < 0 then return nil, 'Invalid argument', 22 end
  f.at = from + offset + 1
  return f.at - 1
end
function File.setvbuf(f) check(f) return true end
local stdin = new_file{text = host.stdin(), readable = true}
local stdout, stderr = new_file{text = '', writable = true, echo = 'stdout'}, new_file{text = '', writable = true, echo = 'stderr'}
local input, output = stdin, stdout
io = {stdin = stdin, stdout = stdout, stderr = stderr}
function io.open(path, mode)
  path, mode = tostring(path), mode or 'r'
  local kind, plus = match(mode, '^([rwa])b?(%+?)b?$')
  if kind == nil then
    if version == 501 then return nil, path .. ': Invalid argument', 22 end
    raw_error("bad argument #2 to 'open' (invalid mode)", 2)
  end
  local text, why, number = host.open(path, kind)
  if text == nil then return nil, path .. ': ' .. why, number end
  return new_file{
    path = path, text = text, folder = number == 21, readable = kind == 'r' or plus ~= '',
    writable = kind ~= 'r' or plus ~= '', appends = kind == 'a', at = kind == 'a' and #text + 1 or 1,
  }
end
local function must(path, mode, level)
  local f, why = io.open(path, mode)
  if f == nil then raw_error(why, level or 3) end
  return f
end
function io.input(f)
  if f ~= nil then input = type(f) == 'string' and must(f, 'r') or f end
  return input
end
function io.output(f)
  if f ~= nil then output = type(f) == 'string' and must(f, 'w') or f end
  return output
end
function io.read(...) return File.read(input, ...) end
function io.write(...) return File.write(output, ...) end
function io.lines(path, ...)
  local f = path == nil and input or must(path, 'r')
  if path ~= nil then f.closes = true end
  return File.lines(f, ...)
end
function io.close(f) return File.close(f or output) end
function io.type(f)
  if getmetatable(f) ~= File then return nil end
  return f.closed and 'closed file' or 'file'
end
function io.tmpfile() return must(os.tmpname(), 'w+') end
function io.popen(command, mode)
  mode = mode or 'r'
  if mode ~= 'r' and mode ~= 'w' then raw_error("bad argument #2 to 'popen' (invalid mode)", 2) end
  if mode == 'w' then return new_file{text = '', writable = true, written = tostring(command)} end
  return new_file{text = '', readable = true, command = tostring(command), shell = true}
end
function print(...)
  local out = {}
  for at = 1, select('#', ...) do out[at] = tostring((select(at, ...))) end
  host.print('stdout', concat(out, '\t') .. '\n')
end

-- Time. A script that keeps asking for it waits for it to go on.
local asked, asked_at = 0, -1
local function clock(resolution)
  local now = host.now()
  if now ~= asked_at then asked, asked_at = 0, now end
  asked = asked + 1
  if asked > 200 then
    asked = 0
    block('tick', resolution)
    now = host.now()
  end
  return now
end
local date = base.date
os = {}
function os.time(t)
  if t == nil then
    local now = clock(1)
    return floor(host.epoch() + floor(now))
  end
  local function field(name, default)
    local value = tonumber(t[name])
    if value == nil and default == nil then raw_error("field '" .. name .. "' missing in date table", 3) end
    return floor(value or default)
  end
  local found = host.mktime(field('year'), field('month'), field('day'), field('hour', 12), field('min', 0), field('sec', 0))
  return found
end
function os.date(text, when)
  text, when = text or '%c', when or os.time()
  if sub(text, 1, 1) ~= '!' then text = '!' .. text end
  return date(gsub(text, '%%s', tostring(floor(when))), floor(when))
end
function os.clock() return clock(0.01) end
function os.difftime(a, b) return a - (b or 0) + 0.0 end
function os.getenv(name) return host.getenv(name) end
function os.setlocale(name) return (name == nil or name == '' or name == 'C') and 'C' or nil end
function os.execute(command)
  if command == nil then return version == 501 and 1 or true end
  return ended((block('shell', tostring(command), '')))
end
function os.exit(code)
  if code == nil or code == true then code = 0 elseif code == false then code = 1 end
  finish(nil, floor(code))
end
local function done(path, ok, why, number)
  if ok then return true end
  return nil, path .. ': ' .. why, number
end
function os.remove(path) return done(path, host.remove(path)) end
function os.rename(from, to) return done(from, host.rename(from, to)) end
function os.tmpname()
  local name = host.tmpname()
  host.write(name, '')
  return name
end

-- luaposix, as far as scripts of sites use it.
local function sleep(seconds)
  block('sleep', seconds)
  return 0
end
local unistd = {
  sleep = sleep, getpid = host.pid, getuid = host.uid, getgid = host.gid, geteuid = host.uid, getegid = host.gid,
  STDIN_FILENO = 0, STDOUT_FILENO = 1, STDERR_FILENO = 2, F_OK = 0, R_OK = 4, W_OK = 2, X_OK = 1,
}
function unistd.gethostname() return host.hostname() end
function unistd.access(path)
  if host.stat(path) ~= nil then return 0 end
  return nil, path .. ': No such file or directory', 2
end
function unistd.unlink(path)
  local ok, why, number = host.remove(path)
  if ok then return 0 end
  return nil, path .. ': ' .. why, number
end
unistd.rmdir = unistd.unlink
function unistd.getcwd() return '/' end
local function refused(library, names, why) -- functions that say what to use in their place
  for name in gmatch(names, '%S+') do
    library[name] = function() raw_error(why[1] .. '.' .. name .. ': not simulated; ' .. why[2], 2) end
  end
end
local processes = {'posix', 'a Lua call cannot be copied into another process. Use os.execute or io.popen'}
refused(unistd, 'fork execp exec pipe dup dup2 write setpid chown link _exit waitpid kill signal', processes)

-- posix.popen: a command whose output is read from a descriptor; it runs when somebody first waits for it.
local pipes, descriptor = {}, 2
local function pipe_of(fd)
  local found = pipes[fd]
  if found == nil then raw_error('posix: ' .. tostring(fd) .. ' is no descriptor of posix.popen; others are not simulated', 3) end
  return found
end
local function run_pipe(pipe)
  if pipe.text == nil then pipe.status, pipe.text = block('shell', pipe.command, '') end
end
local function popen(argv, mode)
  if type(argv) ~= 'table' or (mode ~= nil and mode ~= 'r') then
    raw_error('posix.popen: only a table of words, to be read from, is simulated. Use io.popen', 2)
  end
  local words = {}
  for at, word in ipairs(argv) do words[at] = "'" .. gsub(tostring(word), "'", "'\\''") .. "'" end
  descriptor = descriptor + 1
  local pid = host.pid() + 100000 + descriptor
  pipes[descriptor] = {command = concat(words, ' '), at = 1, pid = pid}
  return {fd = descriptor, pids = {pid}, names = {argv[1]}}
end
function unistd.read(fd, n)
  local pipe = pipe_of(fd)
  run_pipe(pipe)
  local piece = sub(pipe.text, pipe.at, pipe.at + n - 1)
  pipe.at = pipe.at + #piece
  return piece
end
function unistd.close(fd)
  pipe_of(fd)
  return 0
end
function unistd.rpoll(fd)
  pipe_of(fd)
  return 1
end
function unistd.poll(fds, timeout)
  local n = 0
  for fd, each in pairs(fds) do
    pipe_of(fd)
    each.revents, n = {IN = true}, n + 1
  end
  if n == 0 and timeout then sleep(timeout / 1000) end
  return n
end
function unistd.wait(pid)
  for _, pipe in pairs(pipes) do
    if pipe.pid == pid then
      run_pipe(pipe)
      local signal = pipe.status % 128
      if signal ~= 0 then return pid, 'killed', signal end
      return pid, 'exited', floor(pipe.status / 256)
    end
  end
  return nil, 'No child processes', 10
end
local function pclose(pipe)
  local _, how, code = unistd.wait(pipe.pids[1])
  return how, code
end
local function stat(path, field)
  local kind, size, mode, mtime, uid, gid = host.stat(path)
  if kind == nil then return nil, path .. ': No such file or directory', 2 end
  local found = {
    type = kind, size = size, mode = mode, mtime = mtime, atime = mtime, ctime = mtime, uid = uid, gid = gid,
    st_size = size, st_mode = mode, st_mtime = mtime, st_uid = uid, st_gid = gid,
  }
  if type(field) == 'string' then return found[field] end
  return found
end
local function mkdir(path)
  local ok, why, number = host.mkdir(path)
  if ok then return 0 end
  return nil, path .. ': ' .. why, number
end
local function named(kind, names)
  return function(who, field)
    if who == nil then who = host[kind == 'group' and 'gid' or 'uid']() end
    local name, number, group, home = host.person(kind, who)
    if name == nil then return nil end
    local found = {name = name, passwd = 'x', uid = number, gid = group, dir = home, shell = '/bin/bash', mem = {}}
    for to, from in pairs(names) do found[to] = found[from] end
    if type(field) == 'string' then return found[field] end
    return found
  end
end
local user = named('user', {pw_name = 'name', pw_uid = 'uid', pw_gid = 'gid', pw_dir = 'dir', pw_shell = 'shell'})
local group = named('group', {gr_name = 'name', gr_gid = 'gid'})
local function dir(path)
  local names = host.listdir(path or '.')
  if names == nil then return nil, path .. ': No such file or directory', 2 end
  local out = {}
  for name in gmatch(names, '[^\n]+') do out[#out + 1] = name end
  return out
end
local posix = {unistd = unistd, stat = stat, mkdir = mkdir, getpasswd = user, getpwnam = user, getpwuid = user, getgroup = group, dir = dir}
for name, value in pairs(unistd) do posix[name] = value end
function posix.getpid(field)
  if field == nil then return host.pid() end
  return field == 'uid' and host.uid() or field == 'gid' and host.gid() or host.pid()
end
function posix.setenv(name, value) host.setenv(name, value) return 0 end
function posix.nanosleep(seconds, nanoseconds) return sleep(seconds + (nanoseconds or 0) / 1e9) end
function posix.time() return os.time() end
function posix.syslog(_, text) host.log('info', tostring(text)) end
function posix.openlog() end
function posix.closelog() end
posix.popen, posix.pclose = popen, pclose
function posix.getenv(name)
  if name ~= nil then return host.getenv(name) end
  return {PATH = host.getenv('PATH'), HOME = host.getenv('HOME')}
end
function posix.getlogin() return user().name end
function posix.files(path) local at, names = 0, dir(path) return function() at = at + 1 return names[at] end end
function posix.uname(text)
  local parts = {s = 'Linux', n = host.hostname(), r = '6.1.0', v = '#1 SMP', m = 'x86_64'}
  return (gsub(text or '%s %n %r %v %m', '%%(%a)', parts))
end
function posix.chmod() return 0 end
function posix.umask() return 'rwxr-xr-x' end
function posix.basename(path) return (gsub(gsub(path, '/+$', ''), '.*/', '')) end
function posix.dirname(path) return match(path, '^(.*)/[^/]*$') or '.' end
local now_table = function() local now = clock(0.01) return {tv_sec = floor(host.epoch() + now), tv_nsec = floor(now % 1 * 1e9)} end

-- JSON: what dkjson, lunajson, cjson and json.lua have in common.
local null = setmetatable({}, {__tostring = function() return 'null' end})
local escapes = {['"'] = '\\"', ['\\'] = '\\\\', ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t', ['\b'] = '\\b', ['\f'] = '\\f'}
local function quoted(s)
  return '"' .. gsub(s, '[%c"\\]', function(c) return escapes[c] or format('\\u%04x', byte(c)) end) .. '"'
end
local function encode(value, depth)
  depth = depth or 0
  if depth > 100 then raw_error('reference cycle', 0) end
  local kind = type(value)
  if value == nil or value == null then return 'null' end
  if kind == 'boolean' then return tostring(value) end
  if kind == 'number' then
    if value == floor(value) and value > -1e15 and value < 1e15 then return format('%d', value) end
    return format('%.14g', value)
  end
  if kind == 'string' then return quoted(value) end
  if kind ~= 'table' then raw_error("type '" .. kind .. "' is not supported by JSON.", 0) end
  local out = {}
  if #value > 0 or next(value) == nil and rawget(value, '__jsontype') == 'array' then
    for at = 1, #value do out[at] = encode(value[at], depth + 1) end
    return '[' .. concat(out, ',') .. ']'
  end
  for key, each in pairs(value) do out[#out + 1] = quoted(tostring(key)) .. ':' .. encode(each, depth + 1) end
  if #out == 0 then return '{}' end
  return '{' .. concat(out, ',') .. '}'
end
local plain = {b = '\b', f = '\f', n = '\n', r = '\r', t = '\t'}
local function utf8_of(code)
  if code < 0x80 then return string.char(code) end
  if code < 0x800 then return string.char(0xc0 + floor(code / 64), 0x80 + code % 64) end
  return string.char(0xe0 + floor(code / 4096), 0x80 + floor(code / 64) % 64, 0x80 + code % 64)
end
local function decode(s, at)
  local function fail(what) raw_error(what .. ' at character ' .. at, 0) end
  local value
  local function skip() at = find(s, '[^ \t\r\n]', at) or #s + 1 end
  local function string_()
    local stop = at + 1
    while true do
      local c = sub(s, stop, stop)
      if c == '' then fail('unterminated string') end
      if c == '"' then break end
      stop = stop + (c == '\\' and 2 or 1)
    end
    local raw = sub(s, at + 1, stop - 1)
    at = stop + 1
    raw = gsub(raw, '\\u(%x%x%x%x)', function(code) return utf8_of(tonumber(code, 16)) end)
    return (gsub(raw, '\\(.)', function(c) return plain[c] or c end))
  end
  local function many(close, one)
    at = at + 1
    skip()
    if sub(s, at, at) == close then at = at + 1 return end
    while true do
      one()
      skip()
      local c = sub(s, at, at)
      at = at + 1
      if c == close then return end
      if c ~= ',' then at = at - 1 fail('expected "' .. close .. '" or ","') end
    end
  end
  function value()
    skip()
    local c = sub(s, at, at)
    if c == '{' then
      local out = {}
      many('}', function()
        skip()
        if sub(s, at, at) ~= '"' then fail('expected a name') end
        local key = string_()
        skip()
        if sub(s, at, at) ~= ':' then fail('expected ":"') end
        at = at + 1
        out[key] = value()
      end)
      return out
    end
    if c == '[' then
      local out, n = {}, 0
      many(']', function() n = n + 1 out[n] = value() end)
      return out
    end
    if c == '"' then return string_() end
    local word = match(s, '^[-+%w.]+', at) or ''
    at = at + #word
    if word == 'true' then return true elseif word == 'false' then return false elseif word == 'null' then return null end
    local number = tonumber(word)
    if number == nil then at = at - #word fail('unexpected character') end
    return number
  end
  at = at or 1
  local found = value()
  return found, at
end
local function without_null(value)
  if value == null then return nil end
  if type(value) == 'table' then
    for key, each in pairs(value) do value[key] = without_null(each) end
  end
  return value
end
local function decoded(s) return (decode(s, 1)) end
local json = {null = null, encode = function(v) return encode(v) end, decode = function(s) return without_null(decoded(s)) end}
local dkjson = {null = null, encode = json.encode, quotestring = quoted, use_lpeg = function() return package.loaded.dkjson end}
function dkjson.decode(s, at, empty)
  local ok, found, stop = pcall(decode, s, at or 1)
  if not ok then return nil, at or 1, found end
  return empty == nil and without_null(found) or found, stop
end
local cjson = {null = null, encode = json.encode, decode = decoded}
function cjson.new() return cjson end
local function inspect(value, depth)
  depth = type(depth) == 'number' and depth or 0
  if type(value) == 'string' then return format('%q', value) end
  if type(value) ~= 'table' then return tostring(value) end
  if depth > 20 then return '{...}' end
  local out = {}
  for at = 1, #value do out[at] = inspect(value[at], depth + 1) end
  for key, each in pairs(value) do
    local place = type(key) == 'number' and key >= 1 and key <= #value and key % 1 == 0
    if not place then
      local name = type(key) == 'string' and find(key, '^[%a_][%w_]*$') and key or '[' .. inspect(key, depth + 1) .. ']'
      out[#out + 1] = name .. ' = ' .. inspect(each, depth + 1)
    end
  end
  if #out == 0 then return '{}' end
  return '{ ' .. concat(out, ', ') .. ' }'
end
local inspector = setmetatable({inspect = inspect}, {__call = function(_, value) return inspect(value) end})

-- Modules: what lies on the simulated disk, then the stand-ins.
local network = {'socket', 'there is no network but the commands. Use os.execute or io.popen'}
local stand_ins = {
  posix = posix, ['posix.unistd'] = unistd, ['posix.stdlib'] = {getenv = os.getenv, setenv = posix.setenv, mkdtemp = function(t) mkdir(t) return t end},
  ['posix.sys.stat'] = {stat = stat, mkdir = mkdir, S_ISDIR = function(mode) return floor(mode / 0x4000) % 4 == 1 and 1 or 0 end, S_ISREG = function(mode) return floor(mode / 0x8000) % 2 == 1 and 1 or 0 end},
  ['posix.pwd'] = {getpwnam = user, getpwuid = user}, ['posix.grp'] = {getgrnam = group, getgrgid = group},
  ['posix.dirent'] = {dir = dir, files = function(path) local at, names = 0, dir(path) return function() at = at + 1 return names[at] end end},
  ['posix.libgen'] = {basename = posix.basename, dirname = posix.dirname},
  ['posix.time'] = {time = os.time, nanosleep = function(t) return sleep(t.tv_sec + t.tv_nsec / 1e9) end, clock_gettime = now_table, CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 1},
  ['posix.sys.time'] = {gettimeofday = function() local t = now_table() return {tv_sec = t.tv_sec, tv_usec = floor(t.tv_nsec / 1000)} end},
  ['posix.syslog'] = {syslog = posix.syslog, openlog = posix.openlog, closelog = posix.closelog, LOG_PID = 1, LOG_ERR = 3, LOG_WARNING = 4, LOG_NOTICE = 5, LOG_INFO = 6, LOG_DEBUG = 7, LOG_USER = 8, LOG_DAEMON = 24, LOG_LOCAL0 = 128},
  ['posix.errno'] = {errno = function() return 'No such file or directory', 2 end, ENOENT = 2, EEXIST = 17, EACCES = 13},
  lfs = {
    attributes = function(path, field)
      local found, why, number = stat(path)
      if found == nil then return nil, 'cannot obtain information from file \'' .. path .. "': No such file or directory", number end
      found.mode, found.modification, found.access, found.change = found.type == 'regular' and 'file' or found.type, found.mtime, found.mtime, found.mtime
      if type(field) == 'string' then return found[field] end
      return found
    end,
    mkdir = function(path) local ok, why, number = host.mkdir(path) if ok then return true end return nil, why, number end,
    currentdir = function() return '/' end,
    dir = function(path) local at, names = 0, dir(path) if names == nil then raw_error('cannot open ' .. path, 2) end return function() at = at + 1 return names[at] end end,
  },
  socket = {gettime = function() local t = now_table() return t.tv_sec + t.tv_nsec / 1e9 end, sleep = function(n) sleep(n) end, select = function(_, _, n) sleep(n or 0) return {}, {}, 'timeout' end, dns = {gethostname = function() return host.hostname() end}},
  ['posix.poll'] = {poll = unistd.poll, rpoll = unistd.rpoll}, ['posix.sys.wait'] = {wait = unistd.wait, WNOHANG = 1},
  ['posix.signal'] = {kill = unistd.kill, signal = unistd.signal, SIGTERM = 15, SIGKILL = 9, SIGINT = 2},
  ['posix.utsname'] = {uname = function() return {sysname = 'Linux', nodename = host.hostname(), release = '6.1.0', version = '#1 SMP', machine = 'x86_64'} end},
  json = json, ['cjson'] = cjson, ['cjson.safe'] = {null = null, encode = json.encode, decode = function(s) local ok, v = pcall(decoded, s) if ok then return v end return nil, v end},
  dkjson = dkjson, lunajson = json, rapidjson = cjson, inspect = inspector,
}
refused(stand_ins.socket, 'tcp udp connect bind', network)
package = {path = options.path, cpath = options.cpath, config = '/\n;\n?\n!\n-\n', loaded = {}, preload = {}}
local libraries = {_G = _G, io = io, os = os, string = string, table = table, math = math, coroutine = coroutine, debug = debug, package = package, utf8 = utf8, bit32 = bit32}
for name, library in pairs(libraries) do package.loaded[name] = library end
function package.loadlib() return nil, 'dynamic libraries are not there in simctl', 'absent' end
function loadfile(path, mode, ...)
  local text, why = host.open(path, 'r')
  if text == nil then return nil, 'cannot open ' .. path, why end
  return load_text(gsub(text, '^#[^\n]*', ''), '@' .. path, 't', ...)
end
local function cannot(why) raw_error(why, 3) end
function dofile(path)
  local f, why = loadfile(path)
  if f == nil then cannot(why) end
  return f()
end
function package.searchpath(name, path)
  local tried = {}
  for pattern in gmatch(path, '[^;]+') do
    local file = gsub(pattern, '%?', (gsub(gsub(name, '%.', '/'), '%%', '%%%%')))
    if host.stat(file) == 'regular' then return file end
    tried[#tried + 1] = "\n\tno file '" .. file .. "'"
  end
  return nil, concat(tried)
end
function require(name)
  local there = package.loaded[name]
  if there ~= nil then return there end
  local loader, file, tried = package.preload[name], ':preload:', ''
  if loader == nil then
    file, tried = package.searchpath(name, package.path)
    if file ~= nil then
      local why
      loader, why = loadfile(file)
      if loader == nil then raw_error("error loading module '" .. name .. "' from file '" .. file .. "':\n\t" .. why, 2) end
    end
  end
  if loader ~= nil then
    local value = loader(name, file)
    if value ~= nil then package.loaded[name] = value elseif package.loaded[name] == nil then package.loaded[name] = true end
    return package.loaded[name]
  end
  if stand_ins[name] ~= nil then
    package.loaded[name] = stand_ins[name]
    if version == 501 and (name == 'posix' or name == 'lfs' or name == 'socket') then _G[name] = stand_ins[name] end
    return stand_ins[name]
  end
  raw_error("module '" .. name .. "' not found:\n\tno field package.preload['" .. name .. "']" .. (tried or ''), 2)
end
if version == 501 then
  function module(name)
    local m = package.loaded[name] or {}
    package.loaded[name], _G[name] = m, m
    m._NAME, m._M = name, m
    setfenv(2, setmetatable(m, {__index = _G}))
  end
  function package.seeall(m) return setmetatable(m, {__index = _G}) end
end

local function settle() -- a call is over: what was written and never closed is on the disk
  for f in pairs(open_files) do
    if not f.closed then flush(f) end
  end
end
return settle
