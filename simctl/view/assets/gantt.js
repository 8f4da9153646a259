// Nodes over time: who had which nodes when, nodes in use, queue, and waits of two runs.

const [LABEL, NAME, USER, STATE, SUBMIT, ELIGIBLE, START, END, RANGES] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const LEFT = 70, AXIS = 18, STRIP = 46, SPACE = 8;

const data = JSON.parse(document.getElementById("run").textContent);
const byId = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function seconds(us) {
  if (us === null || us === undefined) return "–";
  if (us < 60e6) return `${Number((us / 1e6).toFixed(us < 10e6 ? 2 : 0))}s`;
  const whole = Math.round(us / 1e6), two = (x) => String(x).padStart(2, "0");
  const days = Math.floor(whole / 86400), hours = Math.floor(whole / 3600) % 24;
  return `${days ? `${days}-${two(hours)}` : hours}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

// Steps of time that are easy to read, so that labels have room.
const STEPS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 604800, 2592000].map((s) => s * 1e6);

class Run {
  constructor(run) {
    Object.assign(this, run);
    this.byLabel = new Map();
    for (const job of run.jobs) if (!this.byLabel.has(job[LABEL])) this.byLabel.set(job[LABEL], job);
    this.started = run.jobs.filter((job) => job[START] !== null).sort((a, b) => a[START] - b[START]);
    this.busy = this._steps((job, add) => {
      if (job[START] === null) return;
      let count = 0;
      for (let i = 0; i < job[RANGES].length; i += 2) count += job[RANGES][i + 1] - job[RANGES][i] + 1;
      add(job[START], count);
      add(job[END] ?? this.end_us, -count);
    });
    this.queue = this._steps((job, add) => {
      add(job[ELIGIBLE], 1);
      add(job[START] ?? job[END] ?? this.end_us, -1);
    });
  }

  _steps(tell) {
    const changes = [];
    for (const job of this.jobs) tell(job, (when, by) => changes.push([when, by]));
    changes.sort((a, b) => a[0] - b[0]);
    const times = [], values = [];
    let value = 0, most = 0;
    for (const [when, by] of changes) {
      value += by;
      if (times[times.length - 1] === when) values[values.length - 1] = value;
      else { times.push(when); values.push(value); }
      most = Math.max(most, value);
    }
    return { times, values, most };
  }
}

class Gantt {
  constructor(runs) {
    this.runs = runs.map((run) => new Run(run));
    this.end = Math.max(1, ...this.runs.map((run) => run.end_us)) * 1.005;
    this.from = 0;
    this.to = this.end;
    this.chosen = null;
    this.found = null;
    this.boxes = [];
    this._page();
    this._acts();
    this.draw();
  }

  _page() {
    const page = byId("page");
    page.append(this._numbers());
    this.runs.forEach((run, i) => {
      const { facts } = run;
      page.append(element("h2", {}, this.titleOf(i)),
        element("p", {}, `${facts.recorded ? `Recorded in ${facts.recorded}` : `${facts.scenario}, seed ${facts.seed}, schedule ${facts.schedule}, model ${facts.model}`}: ${run.jobs.length.toLocaleString("en")} runs of jobs${run.nodes.length ? ` on ${run.nodes.length.toLocaleString("en")} nodes` : ", on which nodes nobody recorded"}${run.whole ? "" : "; the run was cut short"}`));
      const canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": `nodes of ${run.name} over time` });
      page.append(canvas);
      this.boxes.push(canvas);
    });
    const below = element("div", { class: "below" });
    page.append(below);
    if (this.runs.length > 1) {
      const scatter = element("div", {}, element("h2", {}, "How long each job waited: across in A, up in B"),
        element("p", {}, "Below the line it waits less in B. The scales are square roots."));
      this.scatter = element("canvas", { role: "img", "aria-label": "wait of each job in A against B" });
      scatter.append(this.scatter);
      below.append(scatter, element("div", { id: "words" }, element("h2", {}, "In words"), element("pre", {}, data.words.join("\n"))));
    }
  }

  // A run's name; of two it bears the letter by which the words below call it.
  titleOf(i) {
    return this.runs.length > 1 ? `${"AB"[i]}: ${this.runs[i].name}` : this.runs[i].name;
  }

  _numbers() {
    const rows = [["", "jobs", "first submit to last end", "cpus in use", "wait: median", "90 %", "99 %", "longest", "slowdown: median", "90 %"]];
    for (const [i, run] of this.runs.entries()) {
      const { jobs, makespan_us, use, wait_us, slowdown } = run.measures;
      rows.push([this.titleOf(i), jobs.toLocaleString("en"), seconds(makespan_us), use === null ? "–" : `${(use * 100).toFixed(1)} %`,
        ...["median", "p90", "p99", "max"].map((key) => wait_us ? seconds(wait_us[key]) : "–"),
        ...["median", "p90"].map((key) => slowdown ? slowdown[key].toFixed(2) : "–")]);
    }
    return element("table", { class: "numbers" }, ...rows.map((row, i) => element("tr", {}, ...row.map((cell) => element(i ? "td" : "th", {}, cell)))));
  }

  // Drawing.

  colours() {
    const style = getComputedStyle(document.documentElement);
    const found = {};
    for (const name of ["bg", "fg", "soft", "line", "band", "odd", "bad", "good", "u0", "process"]) found[name] = style.getPropertyValue(`--${name}`).trim();
    found.dark = parseInt(found.bg.slice(1, 3), 16) < 128;
    return found;
  }

  _colourOf(job, colours) {
    const by = byId("colour").value;
    const light = colours.dark ? 42 : 68;
    if (by === "wait") {
      const part = Math.min(1, Math.sqrt(Math.max(0, (job[START] - job[ELIGIBLE]) / (this.longest || 1))));
      return `hsl(${150 - 150 * part} 60% ${light}%)`;
    }
    const text = by === "user" ? job[USER] : job[LABEL];
    let hash = 7;
    for (const c of text) hash = (hash * 33 + c.charCodeAt(0)) % 36007;
    return `hsl(${(hash * 47) % 360} ${by === "user" ? 55 : 42}% ${light + (hash % 5) * 3 - 6}%)`;
  }

  x(us) {
    return LEFT + ((us - this.from) / (this.to - this.from)) * (this.width - LEFT - 6);
  }

  timeAt(x) {
    return this.from + ((x - LEFT) / (this.width - LEFT - 6)) * (this.to - this.from);
  }

  rowHeight(run) {
    const room = this.runs.length > 1 ? 300 : Math.max(300, Math.min(520, innerHeight - 330));
    return Math.max(run.nodes.length > room ? room / run.nodes.length : 1, Math.min(18, room / Math.max(1, run.nodes.length)));
  }

  draw() {
    this.width = byId("page").clientWidth - 28;
    this.longest = Math.max(1, ...this.runs.map((run) => run.measures.wait_us?.max ?? 0));
    const colours = this.colours();
    this.runs.forEach((run, i) => this._drawRun(run, this.boxes[i], colours));
    if (this.scatter) this._drawScatter(colours);
  }

  _canvas(canvas, width, height) {
    const scale = devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.font = "11px system-ui, sans-serif";
    return context;
  }

  _drawRun(run, canvas, colours) {
    const row = this.rowHeight(run), field = Math.ceil(row * run.nodes.length);
    const height = AXIS + field + 2 * (SPACE + STRIP) + 4;
    const c = this._canvas(canvas, this.width, height);
    canvas.layout = { row, field };
    this._axis(c, height, colours);
    c.fillStyle = colours.odd;
    c.fillRect(LEFT, AXIS, this.width - LEFT - 6, field);
    c.save();
    c.beginPath();
    c.rect(LEFT, AXIS, this.width - LEFT - 6, height);
    c.clip();
    for (const [node, from, to] of run.bad) {
      const x = this.x(from), end = this.x(to ?? this.end);
      if (end < LEFT || x > this.width) continue;
      c.fillStyle = colours.bad;
      c.globalAlpha = 0.35;
      c.fillRect(x, AXIS + node * row, Math.max(1, end - x), Math.max(row, 1));
      c.globalAlpha = 1;
    }
    const gap = row > 5 ? 1 : 0;
    run.boxes = 0;
    const lit = this.found;
    for (const job of run.started) {
      if (job[START] > this.to) break;
      const end = job[END] ?? run.end_us;
      if (end < this.from) continue;
      const x = this.x(job[START]), w = Math.max(0.6, this.x(end) - x - (gap && 0.6));
      const faint = (lit && !lit.has(job[LABEL])) || (this.chosen && this.chosen !== job[LABEL]);
      c.globalAlpha = faint ? 0.15 : 1;
      c.fillStyle = this._colourOf(job, colours);
      for (let i = 0; i < job[RANGES].length; i += 2) {
        const y = AXIS + job[RANGES][i] * row, h = (job[RANGES][i + 1] - job[RANGES][i] + 1) * row - gap;
        c.fillRect(x, y, w, Math.max(h, 0.6));
        run.boxes++;
        if (this.chosen === job[LABEL]) {
          c.strokeStyle = colours.fg;
          c.strokeRect(x, y, w, Math.max(h, 1));
        }
        const told = !faint && w > 18 && h > 11 && [`${job[LABEL]} ${job[NAME]}`, job[LABEL]].find((text) => c.measureText(text).width < w - 6);
        if (told) {
          c.fillStyle = colours.dark ? "#fffe" : "#000c";
          c.fillText(told, x + 3, y + h / 2 + 4);
          c.fillStyle = this._colourOf(job, colours);
        }
      }
    }
    c.globalAlpha = 1;
    c.restore();
    c.fillStyle = colours.soft;
    const every = Math.max(1, Math.ceil(14 / row));
    for (let i = 0; i < run.nodes.length; i += every) c.fillText(run.nodes[i].slice(0, 10), 4, AXIS + i * row + Math.min(row / 2 + 4, 11));
    const top = AXIS + field + SPACE;
    this._strip(c, run, run.busy, Math.max(1, run.nodes.length), top, colours.u0, "in use", `of ${run.nodes.length}`, colours);
    const most = Math.max(1, ...this.runs.map((each) => each.queue.most));
    this._strip(c, run, run.queue, most, top + STRIP + SPACE, colours.process, "queued", `most ${run.queue.most}`, colours);
  }

  _axis(c, height, colours) {
    const span = this.to - this.from, room = (this.width - LEFT) / 90;
    const step = STEPS.find((each) => span / each <= room) ?? STEPS[STEPS.length - 1];
    c.strokeStyle = colours.line;
    c.fillStyle = colours.soft;
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = Math.round(this.x(t)) + 0.5;
      c.beginPath();
      c.moveTo(x, AXIS - 4);
      c.lineTo(x, height);
      c.stroke();
      const told = seconds(t);
      if (x + 3 + c.measureText(told).width < this.width) c.fillText(told, x + 3, 11);
    }
  }

  // Nodes in use, or jobs that wait, as a filled line; of what falls onto one point, the most.
  _strip(c, run, steps, most, top, colour, name, scale, colours) {
    c.fillStyle = colours.soft;
    c.fillText(name, 4, top + 12);
    c.fillText(scale, 4, top + 26);
    c.fillStyle = colour;
    c.globalAlpha = 0.75;
    const { times, values } = steps;
    let low = 0, high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= this.from) low = middle + 1;
      else high = middle;
    }
    let i = Math.max(0, low - 1);
    const end = this.width - 6;
    for (let x = LEFT; x < end; x++) {
      const until = this.timeAt(x + 1);
      while (i + 1 < times.length && times[i + 1] <= this.timeAt(x)) i++;
      let value = times.length && times[i] <= until ? values[i] : 0;
      for (let k = i + 1; k < times.length && times[k] <= until; k++) value = Math.max(value, values[k]);
      const h = (value / most) * STRIP;
      if (h > 0) c.fillRect(x, top + STRIP - h, 1, h);
    }
    c.globalAlpha = 1;
    c.fillStyle = colours.line;
    c.fillRect(LEFT, top + STRIP, end - LEFT, 1);
  }

  _drawScatter(colours) {
    const size = 340, c = this._canvas(this.scatter, size + 60, size + 30);
    const place = (us) => Math.sqrt(Math.max(0, us) / this.longest) * size;
    c.strokeStyle = colours.line;
    c.strokeRect(40.5, 4.5, size, size);
    c.beginPath();
    c.moveTo(40, size + 4);
    c.lineTo(size + 40, 4);
    c.stroke();
    this.points = [];
    for (const [label, job] of this.runs[0].byLabel) {
      const other = this.runs[1].byLabel.get(label);
      if (!other || job[START] === null || other[START] === null) continue;
      const a = job[START] - job[ELIGIBLE], b = other[START] - other[ELIGIBLE];
      const x = 40 + place(a), y = size + 4 - place(b);
      this.points.push([x, y, label]);
      c.fillStyle = b < a ? colours.good : b > a ? colours.bad : colours.soft;
      c.globalAlpha = this.chosen ? (this.chosen === label ? 1 : 0.15) : 0.5;
      c.beginPath();
      c.arc(x, y, this.chosen === label ? 6 : 3, 0, 7);
      c.fill();
    }
    c.globalAlpha = 1;
    c.fillStyle = colours.soft;
    c.fillText("0", 30, size + 18);
    c.fillText(seconds(this.longest), size - 20, size + 18);
  }

  // What is under the mouse.

  jobAt(i, event) {
    const run = this.runs[i], box = this.boxes[i].getBoundingClientRect();
    const { row, field } = this.boxes[i].layout;
    const x = event.clientX - box.left, y = event.clientY - box.top - AXIS;
    if (x < LEFT || y < 0 || y >= field) return null;
    const when = this.timeAt(x), node = Math.floor(y / row), near = (this.to - this.from) / this.width;
    for (const job of run.started) {
      if (job[START] > when + near) break;
      if ((job[END] ?? run.end_us) + near < when) continue;
      for (let k = 0; k < job[RANGES].length; k += 2)
        if (job[RANGES][k] <= node && node <= job[RANGES][k + 1]) return job;
    }
    const bad = run.bad.find(([at, from, to]) => at === node && from <= when && when <= (to ?? this.end));
    return bad ? { bad, node: run.nodes[node] } : null;
  }

  tell(what, event) {
    const tip = byId("tip");
    if (!what) {
      tip.style.display = "none";
      return;
    }
    tip.textContent = "";
    if (what.bad) tip.append(`${what.node}: ${what.bad[3]} from ${seconds(what.bad[1])} to ${what.bad[2] === null ? "the end" : seconds(what.bad[2])}`);
    else tip.append(element("b", {}, `job ${what[LABEL]} ${what[NAME]}`), ` of ${what[USER]}, ${what[STATE]}: waited ${seconds(what[START] - what[ELIGIBLE])}, from ${seconds(what[START])} to ${what[END] === null ? "the end" : seconds(what[END])}`);
    tip.style.display = "block";
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - 440)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - 60)}px`;
  }

  choose(label) {
    this.chosen = this.chosen === label ? null : label;
    byId("told").textContent = "";
    if (this.chosen)
      byId("told").textContent = this.runs.map((run, i) => {
        const job = run.byLabel.get(label);
        const name = this.runs.length > 1 ? `${"AB"[i]}: ` : `job ${label}: `;
        return name + (job ? job[START] === null ? "never started" : `waited ${seconds(job[START] - job[ELIGIBLE])}, started at ${seconds(job[START])}` : "not there");
      }).join("; ");
    this.draw();
  }

  zoom(by, middle = (this.from + this.to) / 2) {
    const span = Math.min(this.end, Math.max(1000, (this.to - this.from) * by));
    const part = (middle - this.from) / (this.to - this.from);
    this.show(middle - span * part, span);
  }

  show(from, span) {
    this.from = Math.max(0, Math.min(from, this.end - span));
    this.to = this.from + span;
    this.draw();
  }

  _acts() {
    this.boxes.forEach((canvas, i) => {
      let began = null;
      canvas.addEventListener("mousemove", (event) => {
        if (began === null) this.tell(this.jobAt(i, event), event);
      });
      canvas.addEventListener("mouseleave", () => this.tell(null));
      canvas.addEventListener("mousedown", (event) => { began = event.offsetX; });
      canvas.addEventListener("mouseup", (event) => {
        const from = began, to = event.offsetX;
        began = null;
        if (from !== null && Math.abs(to - from) > 8) {
          const [a, b] = [this.timeAt(Math.min(from, to)), this.timeAt(Math.max(from, to))];
          this.show(a, Math.max(1000, b - a));
          return;
        }
        const job = this.jobAt(i, event);
        if (job && !job.bad) this.choose(job[LABEL]);
        else if (this.chosen) this.choose(this.chosen);
      });
      canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, this.timeAt(event.offsetX));
      }, { passive: false });
    });
    this.scatter?.addEventListener("click", (event) => {
      const near = this.points.map(([x, y, label]) => [Math.hypot(x - event.offsetX, y - event.offsetY), label]).sort((a, b) => a[0] - b[0])[0];
      if (near && near[0] < 12) this.choose(near[1]);
    });
    byId("closer").addEventListener("click", () => this.zoom(1 / 1.6));
    byId("farther").addEventListener("click", () => this.zoom(1.6));
    byId("all").addEventListener("click", () => this.show(0, this.end));
    byId("colour").addEventListener("change", () => this.draw());
    byId("theme").addEventListener("click", () => {
      const root = document.documentElement.dataset;
      const dark = root.theme ? root.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.theme = dark ? "light" : "dark";
      this.draw();
    });
    byId("find").addEventListener("input", () => this.find(byId("find").value));
    addEventListener("resize", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    addEventListener("keydown", (key) => {
      if (/^(INPUT|SELECT)$/.test(key.target.tagName) || key.ctrlKey || key.metaKey || key.altKey) return;
      const step = (this.to - this.from) / 4;
      const act = {
        ArrowLeft: () => this.show(this.from - step, this.to - this.from),
        ArrowRight: () => this.show(this.from + step, this.to - this.from),
        "+": () => this.zoom(1 / 1.6), "=": () => this.zoom(1 / 1.6), "-": () => this.zoom(1.6),
        0: () => this.show(0, this.end),
        "/": () => byId("find").focus(),
        Escape: () => { this.chosen = null; this.find(""); },
      }[key.key];
      if (act) {
        key.preventDefault();
        act();
      }
    });
  }

  find(text) {
    const wanted = text.trim().toLowerCase();
    this.found = null;
    byId("told").textContent = "";
    if (wanted) {
      const fits = (job) => job[LABEL] === wanted || job[LABEL].startsWith(`${wanted}_`) || job[NAME].toLowerCase().includes(wanted) || job[USER].toLowerCase() === wanted;
      this.found = new Set(this.runs.flatMap((run) => run.jobs.filter(fits).map((job) => job[LABEL])));
      byId("told").textContent = `${this.found.size.toLocaleString("en")} jobs`;
    }
    this.draw();
  }
}

globalThis.simctl = new Gantt(data.runs);
