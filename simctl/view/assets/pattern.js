// Patterns of events, `NAME key=value ...`, as scenarios have them in `expect:`.

class PatternError extends Error {}

const FIELDS = [
  "kind", "name", "phase", "daemon", "node", "role", "pid", "uid", "euid", "job", "array_job",
  "array_task", "step", "task", "plugin", "peer", "rc", "errno", "user", "state", "reason",
];
const NUMBERS = new Set(["pid", "uid", "euid", "job", "array_job", "array_task", "task"]);
const CHOICES = {
  kind: ["plugin", "message", "state", "process", "script", "command", "fault", "log"],
  phase: ["enter", "exit", "send", "receive"],
};
const WORD = /(?:[^\s'"\\]|'[^']*'|"(?:[^"\\]|\\[^])*"|\\[^])+/y;

function wordsOf(text) {
  const words = [];
  let at = 0;
  for (;;) {
    while (at < text.length && /\s/.test(text[at])) at++;
    if (at >= text.length) return words;
    WORD.lastIndex = at;
    const found = WORD.exec(text);
    const end = found ? WORD.lastIndex : at;
    if (!found || (end < text.length && !/\s/.test(text[end])))
      throw new PatternError(`a quote or backslash has nothing that ends it (character ${end + 1})`);
    words.push(found[0]);
    at = end;
  }
}

function unquote(word) {
  return word.replace(/'([^']*)'|"((?:[^"\\]|\\[^])*)"|\\([^])/g, (_, single, double, one) => {
    if (single !== undefined) return single;
    if (double !== undefined) return double.replace(/\\(["\\])/g, "$1");
    return one;
  });
}

// Text in which `*` stands for anything; nothing else is special.
function glob(value) {
  if (!value.includes("*")) return (text) => text === value;
  const parts = value.split("*");
  const first = parts[0], last = parts[parts.length - 1], middle = parts.slice(1, -1);
  return (text) => {
    if (text.length < first.length + last.length) return false;
    if (!text.startsWith(first) || !text.endsWith(last)) return false;
    let at = first.length;
    const end = text.length - last.length;
    for (const part of middle) {
      const found = text.indexOf(part, at);
      if (found < 0 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  };
}

function valueText(value) {
  if (typeof value === "string") return value;
  if (value === null) return "null";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function fieldOf(event, key) {
  if (key.startsWith("args.")) return event.args ? event.args[key.slice(5)] : undefined;
  if (key === "state" || key === "reason") {
    if (event.kind !== "state" || !event.args) return undefined;
    return event.args[key === "state" ? "to" : "reason"];
  }
  return event[key];
}

function compileCondition(key, value, users) {
  if (!FIELDS.includes(key) && !(key.startsWith("args.") && key !== "args."))
    throw new PatternError(`no field '${key}' (an argument of a call is args.${key})`);
  if (value === "") throw new PatternError(`${key}= has no value`);
  const fits = glob(value);
  const choices = CHOICES[key];
  if (choices && !choices.some(fits))
    throw new PatternError(`${key} is one of ${choices.join(", ")}, not '${value}'`);
  if (key === "user") {
    if (/^[0-9]{1,18}$/.test(value) && !(value in users)) return (e) => e.uid === Number(value);
    const uids = new Set(Object.keys(users).filter(fits).map((name) => users[name]));
    if (!uids.size && !value.includes("*")) throw new PatternError(`no user '${value}'`);
    return (e) => uids.has(e.uid);
  }
  if (NUMBERS.has(key) && !value.includes("*") && value !== "null") {
    if (!/^-?[0-9]{1,18}$/.test(value))
      throw new PatternError(`${key} is a number, not '${value}'`);
    return (e) => e[key] === Number(value);
  }
  if (key === "state")
    return (e) => {
      const state = fieldOf(e, "state");
      if (state === undefined) return false;
      const text = valueText(state);
      return fits(text) || (!value.includes("|") && text.split("|").some(fits));
    };
  return (e) => {
    const found = fieldOf(e, key);
    return found !== undefined && fits(valueText(found));
  };
}

// Returns {test, name, note}: `name` is empty where none was given. A NAME that no event has, and
// that holds no `*`, is taken for a part of one; `note` says so.
function parsePattern(text, users, names) {
  let words = wordsOf(text);
  let name = "", note = "";
  if (words.length && !words[0].includes("=")) {
    name = unquote(words[0]);
    words = words.slice(1);
    if (!name.includes("*") && !names.has(name)) {
      name = `*${name}*`;
      note = `read as ${name}`;
    }
  }
  const tests = [], keys = new Set();
  for (const word of words) {
    const at = word.indexOf("=");
    if (at < 0) throw new PatternError(`expected key=value, got '${word}'`);
    const key = word.slice(0, at);
    if (keys.has(key)) throw new PatternError(`${key} is given twice`);
    keys.add(key);
    tests.push(compileCondition(key, unquote(word.slice(at + 1)), users));
  }
  if (name) {
    const fits = glob(name);
    tests.unshift((e) => fits(e.name));
  }
  return { name, note, test: (e) => tests.every((one) => one(e)) };
}
