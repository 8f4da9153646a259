// What a trace tells: events, their needs, processes as lanes, and causal order as columns.

// Undo what pack() of simctl/view/packing.py did.
function unpack(packed) {
  const events = [];
  let seq = 0;
  for (const row of packed.rows) {
    const [step, time, who, what, args, cause, more] = row;
    seq += step;
    const event = { seq, time_us: time };
    Object.assign(event, packed.what[what], who >= 0 ? packed.who[who] : null);
    if (args >= 0) event.args = packed.args[args];
    if (cause > 0) event.cause = seq - cause;
    if (more) Object.assign(event, more);
    events.push(event);
  }
  return events;
}

function family(event) {
  switch (event.kind) {
    case "plugin": {
      const plugin = event.plugin || "";
      if (plugin.startsWith("switch") || event.name.startsWith("switch_p_")) return "switch";
      if (plugin.startsWith("checkpoint") || event.name.startsWith("slurm_ckpt_"))
        return "checkpoint";
      if (plugin.startsWith("burst_buffer") || event.name.startsWith("bb_p_")) return "burst";
      return "other";
    }
    case "message": return "message";
    case "state": return "state";
    case "process": return "process";
    case "fault": case "log": return "fault";
    default: return "command";
  }
}

const FAMILIES = {
  switch: "switch",
  checkpoint: "checkpoint",
  burst: "burst buffer",
  other: "other plugins",
  message: "messages",
  process: "processes",
  state: "states",
  command: "commands",
  fault: "faults",
};

// Calls that only make, pack, copy and free what other calls use.
const BOOKKEEPING =
  /^(switch_p|slurm_ckpt|bb_p)_(alloc|free|pack|unpack|copy|state_pack)(_|$)|^(switch_p_no_frag|switch_p_libstate_(save|restore)|init|fini)$/;

function isBookkeeping(event) {
  return event.kind === "plugin" && BOOKKEEPING.test(event.name);
}

function failed(event) {
  if (event.errno !== undefined) return true;
  if (event.kind !== "plugin" || event.phase === "enter") return false;
  return Number.isInteger(event.rc) && event.rc < 0 && !/_test_|_copy_|sprint/.test(event.name);
}

function hostOf(event) {
  if (event.daemon === undefined && event.pid === undefined) return "simctl";
  return event.node === null || event.node === undefined ? "controller" : event.node;
}

const HOSTS_FIRST = ["simctl", "controller", "login"];

function byName(a, b) {
  const one = HOSTS_FIRST.indexOf(a), other = HOSTS_FIRST.indexOf(b);
  if (one >= 0 || other >= 0) return (one < 0 ? 9 : one) - (other < 0 ? 9 : other);
  return a.localeCompare(b, "en", { numeric: true });
}

class Model {
  constructor(events, header) {
    this.header = header;
    this.users = header.users || {};
    this.userNames = new Map();
    for (const [name, uid] of Object.entries(this.users))
      if (!this.userNames.has(uid)) this.userNames.set(uid, name);
    this.events = events;
    this.index = new Map();
    this.names = new Set();
    events.forEach((event, i) => {
      this.index.set(event.seq, i);
      this.names.add(event.name);
      event.family = family(event);
    });
    this._followUp();
    this._lanes();
  }

  at(seq) {
    const i = this.index.get(seq);
    return i === undefined ? undefined : this.events[i];
  }

  user(uid) {
    if (uid === undefined) return "nobody";
    return this.userNames.get(uid) || `uid ${uid}`;
  }

  // What each event needs; what is not on the page is left out.
  _followUp() {
    const rows = new Map(), enters = new Map();
    this.needs = [];
    this.followers = new Map();
    this.exitOf = new Map();
    for (const event of this.events) {
      const wanted = event.needs ? [...event.needs] : event.cause ? [event.cause] : [];
      if (event.enter !== undefined) {
        wanted.push(event.enter);
        this.exitOf.set(event.enter, event.seq);
      } else if (event.cause && event.pid !== undefined && !event.needs && event.phase !== "receive") {
        const row = `${event.pid} ${event.cause}`;
        if (rows.has(row)) wanted.push(rows.get(row));
        rows.set(row, event.seq);
      }
      // Commands and scripts have an end as well, which does not always name its beginning.
      if (event.kind === "command" || event.kind === "script") {
        const open = `${event.pid} ${event.name}`;
        if (event.phase === "enter") enters.set(open, event.seq);
        else if (enters.has(open)) this.exitOf.set(enters.get(open), event.seq);
      }
      const known = wanted.filter((seq) => seq < event.seq && this.index.has(seq));
      this.needs.push(known);
      for (const seq of new Set(event.needs ? [event.cause, ...event.needs] : [event.cause]))
        if (seq) {
          if (!this.followers.has(seq)) this.followers.set(seq, []);
          this.followers.get(seq).push(event.seq);
        }
    }
  }

  // The seqs of all that an event needs, itself among them.
  past(seq) {
    const found = new Set([seq]), todo = [seq];
    while (todo.length) {
      const i = this.index.get(todo.pop());
      if (i === undefined) continue;
      for (const each of this.needs[i])
        if (!found.has(each)) {
          found.add(each);
          todo.push(each);
        }
    }
    return found;
  }

  // The chain of causes, from an event back.
  chain(seq) {
    const found = [];
    for (let event = this.at(seq); event; event = this.at(event.cause)) found.push(event);
    return found.slice(1);
  }

  _lanes() {
    this.processes = new Map();
    for (const event of this.events) {
      const key = event.pid === undefined ? 0 : event.pid;
      let one = this.processes.get(key);
      if (!one) {
        one = {
          key, pid: event.pid, host: hostOf(event), first: event.seq, daemon: event.daemon,
          role: event.role, step: event.step, job: event.job, task: event.task, uid: event.uid,
          name: event.name, kind: event.kind, program: "", parent: undefined, events: [],
          children: [], depth: 0, fork: undefined,
        };
        this.processes.set(key, one);
        const cause = this.at(event.cause);
        if (cause && cause.pid !== event.pid && cause.pid !== undefined &&
            event.phase !== "receive" && hostOf(cause) === one.host) one.parent = cause.pid;
      }
      one.events.push(event.seq);
      if (event.kind === "process" && event.name === "exec" && event.args)
        one.program = String(event.args.path ?? "");
      if (event.kind === "script") one.script ??= event.name;
      if (one.step === undefined && one.daemon === "srun") one.step = event.step;
      if (one.task === undefined && event.task !== undefined) one.task = event.task;
      if (event.kind === "process" && event.name === "fork" && event.args) {
        this.forks ??= new Map();
        this.forks.set(event.args.child, event.seq);
      }
    }
    for (const one of this.processes.values()) {
      one.fork = this.forks?.get(one.pid);
      if (one.fork !== undefined) one.parent = this.at(one.fork).pid;
      const parent = this.processes.get(one.parent);
      if (parent && parent.host === one.host && parent !== one) parent.children.push(one);
      else one.parent = undefined;
    }
    const hosts = new Map();
    for (const one of this.processes.values()) {
      if (!hosts.has(one.host)) hosts.set(one.host, []);
      if (one.parent === undefined) hosts.get(one.host).push(one);
    }
    this.hosts = [...hosts.keys()].sort(byName);
    this.lanes = [];
    const put = (one, depth) => {
      one.depth = depth;
      this.lanes.push(one);
      for (const child of one.children) put(child, depth + 1);
    };
    for (const host of this.hosts) for (const one of hosts.get(host)) put(one, 0);
  }

  // What a process is called, without its pid.
  processName(one) {
    if (one.host === "simctl") return "faults and log";
    const step = one.step === undefined ? "" : String(one.step);
    if (one.role === "task" || one.daemon === "task") {
      if (step.endsWith(".batch")) return `batch script of job ${one.job}`;
      const program = one.program ? ` ${one.program}` : "";
      return `task ${one.task} of ${step}${program}`;
    }
    if (one.daemon === "slurmstepd") {
      const part = this.header.model === "modern" ? "" :
        one.role === "manager" ? " manager" : one.role === "session" ? " session" : "";
      return `slurmstepd${part} ${step}`;
    }
    if (one.role === "script" && one.script) return `script ${one.script}`;
    if (one.daemon === "srun") return `srun${step ? ` ${step}` : ""}`;
    return String(one.daemon);
  }

  // Who did something, in words.
  who(event) {
    const one = this.processes.get(event.pid === undefined ? 0 : event.pid);
    if (!one || event.pid === undefined) return "simctl";
    return `${this.processName(one)} (pid ${one.pid})`;
  }
}

// Columns: within one moment an event stands right of all that it needs and of what its row did.
class Columns {
  // `shown(event)` says what is drawn, `rowOf(event)` the row it is drawn in.
  constructor(model, shown, rowOf) {
    const { events, needs, index } = model;
    this.col = new Int32Array(events.length).fill(-1);
    const value = new Int32Array(events.length).fill(-1);
    this.moments = [];
    let next = 0, last = new Map(), moment = null;
    for (let i = 0; i < events.length; i++) {
      const event = events[i];
      let after = -1;
      for (const seq of needs[i]) after = Math.max(after, value[index.get(seq)]);
      if (!shown(event)) {
        value[i] = after;
        continue;
      }
      if (moment === null || event.time_us !== moment.time_us) {
        moment = { time_us: event.time_us, start: next, end: next };
        this.moments.push(moment);
        last = new Map();
      }
      const row = rowOf(event);
      const before = last.get(row);
      const col = Math.max(moment.start, after + 1, before === undefined ? 0 : before + 1);
      value[i] = this.col[i] = col;
      last.set(row, col);
      next = Math.max(next, col + 1);
      moment.end = next;
    }
    this.count = next;
    // Events by column, to draw those that are seen.
    this.starts = new Int32Array(next + 1);
    for (const c of this.col) if (c >= 0) this.starts[c + 1]++;
    for (let c = 0; c < next; c++) this.starts[c + 1] += this.starts[c];
    const fill = this.starts.slice();
    this.byCol = new Int32Array(this.starts[next]);
    for (let i = 0; i < events.length; i++)
      if (this.col[i] >= 0) this.byCol[fill[this.col[i]]++] = i;
  }

  // Indices of the events in columns from one to another, the latter left out.
  between(from, to) {
    return this.byCol.subarray(this.starts[Math.max(0, from)], this.starts[Math.min(to, this.count)]);
  }
}

// Things that reach over several columns, found by the columns that are seen.
class Spans {
  constructor() {
    this.blocks = new Map();
    this.wide = [];
  }

  add(from, to, what) {
    const first = from >> 6, last = to >> 6;
    if (last - first > 64) {
      this.wide.push([from, to, what]);
      return;
    }
    for (let block = first; block <= last; block++) {
      if (!this.blocks.has(block)) this.blocks.set(block, []);
      this.blocks.get(block).push([from, to, what]);
    }
  }

  seen(from, to) {
    const found = new Set();
    for (const one of this.wide) if (one[0] < to && one[1] >= from) found.add(one[2]);
    for (let block = from >> 6; block <= to >> 6; block++)
      for (const one of this.blocks.get(block) || [])
        if (one[0] < to && one[1] >= from) found.add(one[2]);
    return found;
  }
}

// A length of time, as format_us() of simctl/scenario/durations.py writes it.
function formatUs(us) {
  if (us < 0) return `-${formatUs(-us)}`;
  if (us === 0) return "0s";
  if (us < 1e6) return us % 1000 === 0 ? `${us / 1000}ms` : `${us}us`;
  if (us < 60e6) return `${us / 1e6}s`;
  return formatMoment(us);
}

// A moment of virtual time, as format_moment() writes it.
function formatMoment(us) {
  const whole = Math.floor(us / 1e6), part = us % 1e6;
  const fraction = part ? `.${String(part).padStart(6, "0")}`.replace(/0+$/, "") : "";
  const two = (x) => String(x).padStart(2, "0");
  const days = Math.floor(whole / 86400), hours = Math.floor(whole / 3600) % 24;
  const clock = `${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}${fraction}`;
  return days ? `${days}-${two(hours)}:${clock}` : `${hours}:${clock}`;
}
