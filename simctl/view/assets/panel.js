// The side panel: what the page shows, and what is known of one event.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") made.addEventListener("click", value);
    else if (value !== undefined) made.setAttribute(key, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) made.append(child);
  return made;
}

function counted(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

class Panel {
  // `go` has seq(number), mark(number) and overview().
  constructor(box, page, model, go) {
    this.box = box;
    this.page = page;
    this.model = model;
    this.go = go;
  }

  _put(...children) {
    this.box.replaceChildren(...children.flat().filter((each) => each !== null));
    this.box.scrollTop = 0;
  }

  // One event as a line that can be clicked.
  line(event, note = "") {
    const { model } = this;
    const about = event.kind === "state" ? ` ${shortName(event)}` : "";
    return element("button", { class: "line", "data-go": event.seq, onclick: () => this.go.seq(event.seq) },
      element("span", { class: `dot f-${event.family}` }),
      element("span", { class: "seq" }, String(event.seq)),
      element("span", { class: "what" },
        element("b", {}, event.name), event.phase ? ` ${event.phase}` : "", about,
        element("i", {}, ` ${formatMoment(event.time_us)} · ${model.who(event)}${event.pid === undefined ? "" : ` on ${hostOf(event)}, as ${model.user(event.uid)}`}${note}`)));
  }

  lines(events, most, more) {
    const shown = events.slice(0, most).map((event) => this.line(event));
    if (events.length > most)
      shown.push(element("button", { class: "more", onclick: (click) => {
        click.target.replaceWith(...events.slice(most, most + 500).map((event) => this.line(event)));
      } }, `${counted(events.length - most, more)} more`));
    return shown;
  }

  overview() {
    const { page } = this;
    this._put(
      element("h2", {}, "What this page shows"),
      element("p", {}, page.about),
      ...page.notes.map((note) => element("p", { class: "note" }, note)),
      this._verdict(),
      this._jobs(),
      this._apart(),
      this._legend(),
    );
  }

  _verdict() {
    const { page } = this;
    if (!page.broken.length && !page.verdict) return null;
    if (!page.broken.length) return element("p", { class: page.tone && "good" }, page.verdict);
    return element("div", {},
      element("h3", { class: "bad" }, page.verdict),
      page.broken.map((mark, number) =>
        element("button", { class: "breach", "data-mark": number, onclick: () => this.go.mark(number) },
          element("span", { class: "number" }, String(number + 1)),
          element("span", {}, element("b", {}, mark.what), ` ${mark.title}`))));
  }

  _jobs() {
    const { page } = this;
    if (!page.jobs.length) return element("p", {}, "No job came up.");
    const rows = page.jobs.slice(0, 500).map((job) => element("tr", {},
      element("td", {}, element("button", { class: "link", onclick: () => this.go.seq(job.last) }, job.label)),
      element("td", {}, job.user),
      element("td", { class: `state ${job.tone}` }, job.state),
      element("td", {}, job.when,
        job.why ? element("button", { class: "why", "data-go": job.why.seq, onclick: () => this.go.seq(job.why.seq) },
          job.why.text) : null)));
    const more = page.jobs.length - 500;
    return element("div", {}, element("h3", {}, "Jobs"),
      element("table", { class: "jobs" },
        element("tr", {}, ...["job", "user", "state", "when, and what failed first"].map((each) => element("th", {}, each))),
        ...rows),
      more > 0 ? element("p", { class: "note" }, `and ${more} more`) : null);
  }

  // How the order of events differs from a run in which all held.
  _apart() {
    const { apart } = this.page;
    if (!apart) return null;
    const side = (title, lines) => element("div", {}, element("h4", {}, title),
      ...lines.map((line) => line.seq && this.model.at(line.seq)
        ? element("button", { class: `line ${line.only ? "only" : ""}`, onclick: () => this.go.seq(line.seq) }, line.text)
        : element("div", { class: `line ${line.only ? "only" : ""}` }, line.text)));
    return element("div", {}, element("h3", {}, "What differs from a run in which all held"),
      element("p", {}, apart.told),
      ...apart.sentences.map((each) => element("p", { class: "note" }, each)),
      element("div", { class: "apart" }, side("this run", apart.here), side(apart.name, apart.there)));
  }

  _legend() {
    const { model } = this;
    const mark = (markup, text) => {
      const row = element("div", { class: "key" });
      row.innerHTML = `<svg width="40" height="20">${markup}</svg>`;
      row.append(element("span", {}, text));
      return row;
    };
    const user = (kind, text) => mark(`<line x1="2" x2="38" y1="10" y2="10" class="life ${kind}"/>`, text);
    const users = [user("u-root", "the process is root")];
    if ("slurm" in model.users) users.push(user("u-slurm", "it is slurm, the user of slurmctld"));
    [...model.userNames].filter(([uid, name]) => uid !== 0 && name !== "slurm").slice(0, 5)
      .forEach(([, name], i) => users.push(user(`u-${i % 5}`, `it is ${name}`)));
    return element("div", {}, element("h3", {}, "How to read the picture"),
      element("p", {}, "Each row is a process; a process stands below the one that forked it. Time goes to the right: within one moment of virtual time, a band, an event stands right of all that had to come before it."),
      mark('<rect x="6" y="2" width="28" height="16" rx="3" class="bar f-switch"/>', "a call of a switch plugin"),
      mark('<rect x="6" y="2" width="28" height="16" rx="3" class="bar f-checkpoint"/>', "a call of a checkpoint plugin"),
      mark('<rect x="6" y="2" width="28" height="16" rx="3" class="bar f-burst"/>', "a call of a burst buffer plugin"),
      mark('<rect x="6" y="2" width="28" height="16" rx="3" class="bar f-command"/>', "a command that was typed, or a script"),
      mark('<rect x="6" y="2" width="28" height="16" rx="3" class="bar f-fault"/>', "a fault, or a line of a log"),
      mark('<circle cx="8" cy="10" r="3.6" class="sent"/><path d="M12 10H28" class="arrow" /><circle cx="32" cy="10" r="3.6" class="got"/>', "a message, sent and received"),
      mark('<path d="M20 4l6 6l-6 6l-6 -6z" class="f-state"/>', "a job, step, node or burst buffer has a new state"),
      mark('<path d="M15 5h6l4 5l-4 5h-6z" class="f-process"/>', "a fork; its line leads to the new process"),
      mark('<path d="M15 5l10 5l-10 5z" class="turned u-0"/>', "the process becomes another user"),
      mark('<circle cx="20" cy="10" r="4.4" class="f-process"/>', "the process becomes a program (exec), or is signalled"),
      mark('<path d="M15 5l9 10m0 -10l-9 10" class="gone"/>', "the process ends"),
      ...users,
      element("p", {}, "Click an event: all that led to it stays lit, and its process, user, arguments and result stand here. Click a host or a process to fold what is below it. Calls that only allocate, pack, copy and free are folded; “bookkeeping” shows them."),
      element("p", { class: "keys" }, "Keys: ← → walk in the process, ↑ goes to the cause, ↓ to what follows, n and p to what broke, + and − zoom, / filter, Esc this page."));
  }

  event(seq) {
    const { model, page } = this;
    const event = model.at(seq);
    if (!event) return;
    const chain = model.chain(seq);
    const cause = model.at(event.cause);
    const told = page.told[seq];
    const marks = page.broken.map((mark, number) => [mark, number]).filter(([mark]) => mark.seqs.includes(seq));
    const followers = (model.followers.get(seq) || []).map((each) => model.at(each)).filter(Boolean);
    this._put(
      this._back(),
      element("h2", { class: "name" }, element("span", { class: `dot f-${event.family}` }), event.name,
        element("small", {}, `${event.phase ? ` ${event.phase}` : ""}, event ${seq}`)),
      page.docs[event.name] ? element("p", { class: "note" }, page.docs[event.name]) : null,
      ...marks.map(([mark, number]) => element("button", { class: "breach", "data-mark": number, onclick: () => this.go.mark(number) },
        element("span", { class: "number" }, String(number + 1)), element("span", {}, element("b", {}, mark.what), ` ${mark.title}`))),
      told ? element("p", { class: "told" }, told) : null,
      this._facts(event, cause),
      this._values("Arguments", event.args),
      this._result(event),
      this._others(event),
      element("h3", {}, "Led to it"),
      ...(chain.length ? this.lines(chain, 12, "event") : [element("p", { class: "note" }, event.cause ? `event ${event.cause}, which is not on this page` : "nothing: it began something")]),
      ...this._afterwards(event, followers),
    );
  }

  // What followed; what comes of a fault names no cause, so there it is what happened next.
  _afterwards(event, followers) {
    const { model } = this;
    if (followers.length) return [element("h3", {}, "Followed from it"), ...this.lines(followers, 8, "event")];
    if (event.family !== "fault") return [element("h3", {}, "Followed from it"), element("p", { class: "note" }, "nothing")];
    const i = model.index.get(event.seq);
    return [element("h3", {}, "Happened next"), ...this.lines(model.events.slice(i + 1, i + 31), 8, "event")];
  }

  _back() {
    return element("button", { class: "back", onclick: () => this.go.overview() }, "× what this page shows");
  }

  _facts(event, cause) {
    const { model } = this;
    const rows = [];
    const row = (name, ...value) => rows.push(element("dt", {}, name), element("dd", {}, ...value));
    const go = (other, text) => element("button", { class: "link", "data-go": other.seq, onclick: () => this.go.seq(other.seq) }, text);
    const process = model.processes.get(event.pid === undefined ? 0 : event.pid);
    if (event.pid !== undefined) {
      row(event.kind === "plugin" ? "called by" : "process", element("b", {}, model.processName(process)), `, pid ${event.pid}`);
      row("on", hostOf(event) === "controller" ? "the controller" : hostOf(event));
      const as = `${model.user(event.uid)} (uid ${event.uid})`;
      row("as", element("b", {}, as), event.euid !== undefined && event.euid !== event.uid ? `, effective ${model.user(event.euid)} (${event.euid})` : "");
    }
    if (cause) row("after", go(cause, `${cause.name}${cause.phase ? ` ${cause.phase}` : ""}`), ` of ${cause.pid === event.pid ? "the same process" : model.who(cause)}, event ${cause.seq}`);
    if (process && process.fork !== undefined) {
      const fork = model.at(process.fork);
      row("forked by", go(fork, model.who(fork)));
    }
    const began = event.t0_us === undefined ? "" : `, began at ${formatMoment(event.t0_us)}`;
    row("at", `${formatMoment(event.time_us)}${began}`);
    const about = [];
    if (event.job !== undefined) about.push(`job ${event.job}`);
    if (event.array_job !== undefined) about.push(`${event.array_job}_${event.array_task ?? "[…]"} of an array`);
    if (event.step !== undefined) about.push(`step ${event.step}`);
    if (event.task !== undefined) about.push(`task ${event.task}`);
    if (about.length) row("about", about.join(", "));
    if (event.plugin !== undefined) row("plugin", event.plugin);
    if (event.peer !== undefined) row(event.phase === "receive" ? "from" : "to", event.peer);
    if (event.enter !== undefined && model.at(event.enter)) row("began with", go(model.at(event.enter), `event ${event.enter}`));
    const exit = event.phase === "enter" ? model.exitOf.get(event.seq) : undefined;
    if (exit !== undefined) row("ended with", go(model.at(exit), `event ${exit}`));
    return element("dl", {}, ...rows);
  }

  _values(title, values) {
    if (!values || !Object.keys(values).length) return null;
    return element("div", {}, element("h3", {}, title),
      element("table", { class: "values" }, ...Object.entries(values).map(([key, value]) =>
        element("tr", {}, element("th", {}, key), element("td", {}, typeof value === "object" && value !== null ? JSON.stringify(value, null, 1) : valueText(value))))));
  }

  _result(event) {
    if (event.rc === undefined && event.errno === undefined) return null;
    const text = event.rc === undefined ? "" : typeof event.rc === "object" ? JSON.stringify(event.rc) : String(event.rc);
    return element("p", { class: failed(event) ? "bad result" : "result" }, event.kind === "plugin" ? "returned " : "result ",
      element("b", {}, text), event.errno === undefined ? "" : ` ${event.errno}`);
  }

  // What a later version of traces may tell besides.
  _others(event) {
    const known = new Set([...FIELDS, "seq", "time_us", "t0_us", "args", "enter", "cause", "needs", "family", "values"]);
    const others = Object.fromEntries(Object.entries(event).filter(([key]) => !known.has(key)));
    return element("div", {}, this._values("Values", event.values), this._values("Besides", others));
  }

  // A broken ordering or expectation: the events that show it, and what lies between them.
  breach(number) {
    const { model, page } = this;
    const mark = page.broken[number];
    const seqs = mark.seqs.filter((seq) => model.at(seq)).sort((a, b) => a - b);
    const between = seqs.length > 1 ? model.events.filter((event) => event.seq > seqs[0] && event.seq < seqs[seqs.length - 1] && !seqs.includes(event.seq)) : [];
    this._put(
      this._back(),
      element("h2", { class: "bad" }, element("span", { class: "number" }, String(number + 1)), ` ${mark.what}`),
      element("p", { class: "told" }, mark.title),
      mark.says ? element("p", {}, mark.says) : null,
      element("h3", {}, seqs.length > 1 ? "The events that show it" : seqs.length ? "The event that shows it" : "No event of its own shows it"),
      ...seqs.map((seq) => this.line(model.at(seq))),
      ...(mark.text ? [element("h3", {}, "As `simctl run` tells it"), element("pre", {}, mark.text)] : []),
      ...(between.length ? [element("h3", {}, `Between them: ${counted(between.length, "event")}`), ...this.lines(between, 20, "event")] : []),
    );
  }
}
