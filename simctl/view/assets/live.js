// A session in the browser: what it has come to, and what may be done next.

const MOST_EVENTS = 50000;
// How long nobody may answer before the page gives up.
const PATIENCE_MS = 3000;
const data = JSON.parse(document.getElementById("run").textContent);

class Live {
  constructor() {
    this.token = new URLSearchParams(location.search).get("t") || "";
    this.tab = [...crypto.getRandomValues(new Uint32Array(3))].map((each) => each.toString(36)).join("");
    this.events = [];
    this.acts = true;
    this.waits = false;
    this.ended = false;
    this.history = [];
    this.typed = 0;
    this.page = new Page(data.page, []);
    this.byId = (id) => document.getElementById(id);
    this._buttons();
    this._typing();
    this._panel();
    this._connect();
  }

  _connect() {
    const source = new EventSource(`/events?t=${encodeURIComponent(this.token)}&tab=${this.tab}`);
    source.addEventListener("message", (event) => this._told(JSON.parse(event.data)));
    source.addEventListener("acts", (event) => {
      this.acts = JSON.parse(event.data).acts;
      this._stand();
    });
    source.addEventListener("ended", () => {
      source.close();
      this._over(this.served ? "The cluster is served no more." : "The session has ended.");
    });
    let silent = null;
    const giveUp = () => {
      source.close();
      this._over("simctl does not answer any more.");
    };
    source.addEventListener("open", () => { clearTimeout(silent); silent = null; });
    source.addEventListener("error", () => {
      if (this.ended) return;
      if (source.readyState === EventSource.CLOSED) giveUp();
      else silent ??= setTimeout(giveUp, PATIENCE_MS);
    });
    addEventListener("pagehide", () => {
      source.close();
      navigator.sendBeacon(`/leave?t=${encodeURIComponent(this.token)}`, JSON.stringify({ tab: this.tab }));
    });
  }

  _over(text) {
    this.ended = true;
    this._say(`${text}\n`);
    this._stand();
  }

  _say(text) {
    const said = this.byId("said");
    said.textContent = (said.textContent + text).slice(-200000);
    said.scrollTop = said.scrollHeight;
  }

  // Take in how things stand at a prompt.
  _told(told) {
    if (told.prompt === undefined) return;
    const { page } = this, { picture } = page;
    const back = told.start < this.events.length;
    this.events.length = Math.min(this.events.length, told.start);
    this.events.push(...told.events);
    this.now = told;
    this.waits = true;
    this.busy = false;
    this.hidden = Math.max(0, this.events.length - MOST_EVENTS);
    page.page.jobs = told.jobs.map((job) => this._job(job));
    page.page.notes = this.hidden ? [`Of ${this.events.length.toLocaleString("en")} events the last ${MOST_EVENTS.toLocaleString("en")} are here.`] : [];
    const keep = picture.selected;
    page.load(this.events.slice(this.hidden).map((event) => ({ ...event })));
    this._say(told.said);
    const last = this.events.length ? this.events[this.events.length - 1].seq : null;
    const at = told.at ?? last;
    if (told.at !== null && told.at !== undefined) page.select(told.at);
    else if (keep !== null && page.model.at(keep) && !back && !told.events.length) page.select(keep);
    else {
      picture.selected = picture.past = null;
      page.overview();
      if (at !== null) picture.show(at);
      picture.draw();
    }
    this._stand();
    if (this.acts) this.byId("line").focus({ preventScroll: true });
  }

  _job(job) {
    const states = this.events.filter((event) => event.name === "job_state" && event.job === job.id);
    const base = job.state.split("|")[0];
    const running = ["PENDING", "RUNNING", "SUSPENDED"].includes(base);
    return {
      id: job.id, label: job.label, user: job.user, state: job.state, why: null,
      tone: base === "COMPLETED" ? "fine" : running ? "" : "failed",
      when: job.nodes ? `on ${job.nodes}` : "", last: states.length ? states[states.length - 1].seq : 0,
    };
  }

  async _post(path, more = {}) {
    const answer = await fetch(`${path}?t=${encodeURIComponent(this.token)}`, {
      method: "POST", body: JSON.stringify({ tab: this.tab, ...more }),
    });
    return answer.ok ? "" : answer.text();
  }

  async do(line) {
    if (!this.waits || this.ended) return;
    this.waits = false;
    const timer = setTimeout(() => { this.busy = true; this._stand(); }, 250);
    const why = await this._post("/do", { line });
    clearTimeout(timer);
    if (why) {
      this.waits = !why.startsWith("the run goes on");
      this._say(`(${why.trim()})\n`);
    } else if (!this.waits) this.busy = true;
    this._stand();
  }

  // What may be done.

  // A cluster that is served goes on by itself: nothing steps it, or goes back.
  get served() {
    return data.page.kind === "served";
  }

  _buttons() {
    if (this.served) return;
    const acts = [
      ["step", "step", "to the next event"], ["turn", "turn", "one turn: whoever is next does all it does before it waits"],
      ["continue", "continue", "to the next stop, or until nothing is left to do"], ["run 10s", "run 10s", "let ten seconds pass"],
      ["back", "back", "one event back"], ["back 20", "back 20", "twenty events back"],
    ];
    this.byId("acts").replaceChildren(...acts.map(([name, line, title]) =>
      element("button", { "data-do": line, title, onclick: () => this.do(line) }, name)),
      element("button", { id: "halt", title: "stop what goes on (as Ctrl-C)", onclick: () => this._post("/stop") }, "stop"));
  }

  _stand() {
    const { now } = this;
    const may = this.waits && this.acts && !this.ended;
    for (const button of document.querySelectorAll("#acts [data-do]")) button.disabled = !may;
    if (!this.served) this.byId("halt").disabled = this.waits || this.ended || !this.acts;
    this.byId("line").disabled = !this.acts || this.ended;
    if (!now) return;
    this.byId("prompt").textContent = now.prompt;
    this.byId("prompt").title = now.prompt;
    const button = (name, line, title) => {
      const made = element("button", { "data-do": line, title, onclick: () => this.do(line) }, name);
      made.disabled = !may;
      return made;
    };
    const parts = [];
    if (!this.acts && !this.ended)
      parts.push(element("div", { class: "row" }, "Another page acts; this one looks on. ",
        element("button", { id: "take", onclick: () => this._post("/act") }, "act here")));
    if (this.served) {
      parts.push(element("h3", {}, this.ended ? "ended" : now.now), ...this._faults(now, may));
      this.byId("stand").replaceChildren(...parts);
      return;
    }
    parts.push(element("h3", {}, this.ended ? "ended" : this.waits ? `${now.now}: next` : "goes on…"), element("div", { id: "ahead" }, now.ahead));
    if (now.call) parts.push(...this._call(now.call, button));
    parts.push(...this._due(now, button));
    parts.push(...this._breaks(now, button));
    parts.push(...this._faults(now, may));
    const name = element("input", { id: "save", "aria-label": "name of the scenario", value: this.name || "session.yaml" });
    name.addEventListener("input", () => { this.name = name.value; });
    const user = element("select", { id: "user", "aria-label": "who types" }, ...now.users.map((each) => element("option", { value: each }, each)));
    user.value = now.user;
    user.disabled = !may;
    user.addEventListener("change", () => this.do(`as ${user.value}`));
    const keep = element("button", { id: "keep", title: "write a scenario that repeats the session", onclick: () => this.do(`save ${name.value}`) }, "save as scenario");
    keep.disabled = !may;
    parts.push(element("h3", {}, "session"), element("div", { class: "row" }, "types as", user, name, keep));
    if (now.changed.length)
      parts.push(element("h3", {}, "the last step changed"), element("div", { class: "changed", id: "changed" }, now.changed.join("\n")));
    this.byId("stand").replaceChildren(...parts);
  }

  _call(call, button) {
    return [element("h3", {}, `${call.name} of ${call.who} begins: answer for the plugin`),
      element("div", { class: "row", id: "answer" }, button("let it run", "finish", "on to the end of the call"),
        button("return 0", "return 0", "it returns 0 without running"), button("fail", "fail", "it fails"),
        button("delay 5s", "delay 5s", "it blocks before it runs"), button("what it sees", "call", "its process, arguments, what the plugin keeps"))];
  }

  // The turns that are due: which goes first may be chosen among those of one moment.
  _due(now, button) {
    if (!now.due.length) return [];
    const first = now.due.filter((each) => each.rank);
    return [element("h3", {}, first.length > 1 && now.between ? "due: choose who goes first" : "due"),
      ...now.due.slice(0, 8).map((each) => {
        const text = `${each.when} ${each.text}`;
        if (!each.rank || first.length < 2 || !now.between) return element("div", {}, text);
        const made = button(text, `pick ${each.rank}`, "it goes first");
        made.className = "due";
        return made;
      })];
  }

  _breaks(now, button) {
    if (!now.breaks.length) return [];
    return [element("h3", {}, "stops"), ...now.breaks.map((each) =>
      element("div", { class: "row break" }, each.told, button("×", `delete ${each.number}`, "forget it")))];
  }

  _faults(now, may) {
    const made = (name, line) => {
      const one = element("button", { "data-do": line, onclick: () => this.do(line) }, name);
      one.disabled = !may;
      return one;
    };
    return [element("h3", {}, "nodes"), ...now.nodes.slice(0, 8).map((node) =>
      element("div", { class: "row" }, element("b", {}, node.name), node.state,
        made("crash", `crash ${node.name}`), made("start", `start ${node.name}`))),
      element("div", { class: "row" }, element("b", {}, "slurmctld"), made("crash", "crash slurmctld"), made("restart", "restart slurmctld for 5s"))];
  }

  // In the panel of an event: go back to it, stop at what is like it.
  _panel() {
    if (this.served) return;
    const { panel } = this.page;
    const event = panel.event.bind(panel);
    panel.event = (seq) => {
      event(seq);
      const shown = this.page.model.at(seq);
      if (!shown || this.ended) return;
      const where = shown.node ? ` node=${shown.node}` : "";
      const acts = [];
      const newest = this.events.length ? this.events[this.events.length - 1].seq : 0;
      if (seq < newest) acts.push(["back to here", `back ${newest - seq}`, "what was done later is forgotten"]);
      acts.push([`stop at ${shown.name}`, `break ${shown.name}`, "at every event of this name"]);
      if (where) acts.push([`stop at it on ${shown.node}`, `break ${shown.name}${where}`, "at every such event there"]);
      if (shown.pid !== undefined) acts.push([`stop at all of pid ${shown.pid}`, `break * pid=${shown.pid}`, "at whatever this process does"]);
      if (shown.kind === "plugin") acts.push(["what is it for", `explain ${shown.name}`, "the guide, who calls it, orderings"]);
      panel.box.querySelector("h2").after(element("div", { id: "here" }, ...acts.map(([name, line, title]) =>
        element("button", { class: "do", "data-do": line, title, onclick: () => this.do(line) }, name))));
    };
    // A click on the dot of a row stops at its process.
    this.page.picture.onDot = (pid) => this.do(`break * pid=${pid}`);
  }

  _typing() {
    const line = this.byId("line");
    this.byId("type").addEventListener("submit", (submit) => {
      submit.preventDefault();
      const text = line.value;
      if (!this.waits || !text.trim()) return;
      this.history.push(text);
      this.typed = this.history.length;
      line.value = "";
      this.do(text);
    });
    line.addEventListener("keydown", (key) => {
      const by = { ArrowUp: -1, ArrowDown: 1 }[key.key];
      if (!by || !this.history.length) return;
      key.preventDefault();
      this.typed = Math.max(0, Math.min(this.history.length, this.typed + by));
      line.value = this.history[this.typed] ?? "";
    });
  }
}

globalThis.live = new Live();
globalThis.simctl = globalThis.live.page;
