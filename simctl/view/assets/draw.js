// The picture: rows of processes, columns of causal order; only what is seen is drawn.

const ROW = 22, TOP = 42, PAD = 10, GAP = 16, CHAR = 6.3;
const ZOOMS = [
  { name: "overview", width: 5 },
  { name: "small", width: 9 },
  { name: "medium", width: 15 },
  { name: "names", width: 0, most: 150, beside: 90 },
  { name: "wide", width: 0, most: 320, beside: 320 },
];
const NAMES = 3;
const MANY_LANES = 400, MANY_SCRIPTS = 8;
// More events than this on one screen bear no names: they could not be read, and a frame would take long.
const MANY_NAMES = 600;

const escapeText = (text) =>
  String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

// The name of an event as it stands in the picture.
function shortName(event) {
  const args = event.args || {};
  switch (event.kind) {
    case "plugin":
      return event.name.replace(/^(switch_p|slurm_ckpt|bb_p)_/, "");
    case "message":
      return event.name.replace(/^(REQUEST|RESPONSE|MESSAGE)_/, "");
    case "state": {
      const whose = event.name === "node_state" ? args.node :
        event.name === "step_state" ? event.step : event.job === undefined ? "" : `job ${event.job}`;
      return `${whose ?? ""} ${event.name === "bb_state" ? "buffer " : ""}${args.to ?? ""}`.trim();
    }
    case "process": {
      if (event.name === "exec") return `exec ${String(args.path ?? "").split("/").pop()}`;
      if (event.name === "signal") return `signal ${args.signal ?? ""}`;
      return event.name;
    }
    case "command":
      return event.phase === "exit" ? `exit ${valueText(event.rc ?? "")}` :
        String(args.line ?? event.name);
    case "fault":
      return String(args.fault ?? event.name);
    default:
      return event.name;
  }
}

const IN_BAR = new Set(["switch", "checkpoint", "burst", "other", "command", "fault"]);

function barWidth(event, most) {
  return Math.min(most, Math.max(20, shortName(event).length * CHAR + 10));
}

// How much of a column an event takes in a zoom that shows names.
function wantedWidth(event, zoom) {
  const name = shortName(event).length * CHAR;
  if (IN_BAR.has(event.family)) return barWidth(event, zoom.most) + 6;
  if (event.name === "exit" || event.name === "fork") return 22;
  return Math.min(zoom.beside, name) + 26;
}

class Picture {
  // `box` scrolls; `options` has hidden (families), bookkeeping, filter, zoom, collapsed.
  constructor(model, box, options, onPick) {
    this.model = model;
    this.box = box;
    this.options = options;
    this.selected = null;
    this.past = null;
    this.marks = [];
    this.flagged = new Map();
    this.markShown = -1;
    // What a click on the dot of a row does; without it rows have none.
    this.onDot = null;
    this.left = box.clientWidth < 640 ? 190 : 264;
    box.innerHTML = '<div class="sizer"><svg class="picture" tabindex="0" role="application" ' +
      'aria-label="Events by process and causal order. Arrow keys walk."></svg></div>';
    this.sizer = box.firstChild;
    this.svg = this.sizer.firstChild;
    let asked = false;
    const later = () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        this.draw();
      });
    };
    this.drawSoon = later;
    box.addEventListener("scroll", later, { passive: true });
    new ResizeObserver(later).observe(box);
    this.svg.addEventListener("click", (click) => {
      const at = click.target.closest("[data-seq],[data-dot],[data-fold],[data-mark]");
      const under = at ? undefined : this.eventAt(click.clientX, click.clientY);
      if (under !== undefined) onPick({ seq: under });
      else if (!at) onPick({});
      else if (at.dataset.dot) this.onDot(Number(at.dataset.dot));
      else if (at.dataset.seq) onPick({ seq: Number(at.dataset.seq) });
      else if (at.dataset.mark) onPick({ mark: Number(at.dataset.mark) });
      else onPick({ fold: at.dataset.fold });
    });
  }

  setMarks(marks) {
    this.marks = marks;
    this.flagged = new Map();
    marks.forEach((mark, number) => {
      for (const seq of mark.seqs) if (!this.flagged.has(seq)) this.flagged.set(seq, number);
    });
  }

  isShown(event) {
    const { hidden, bookkeeping, filter } = this.options;
    if (filter && !filter.test(event)) return false;
    if (this.flagged.has(event.seq) || event.seq === this.selected) return true;
    if (hidden.has(event.family)) return false;
    return bookkeeping || (filter && filter.name) || failed(event) || !isBookkeeping(event);
  }

  // The key of the row in which a process is drawn: its own, or that of what is folded around it.
  _rowKeys() {
    const { collapsed } = this.options;
    const keys = new Map();
    for (const one of this.model.lanes) {
      let key = `p${one.key}`;
      const parent = one.parent === undefined ? undefined : keys.get(one.parent);
      if (one.host === "simctl" || collapsed.has(`h${one.host}`)) key = `h${one.host}`;
      else if (parent !== undefined && (collapsed.has(`p${one.parent}`) || parent !== `p${one.parent}`))
        key = parent;
      keys.set(one.key, key);
    }
    return keys;
  }

  layout() {
    const { model, options } = this;
    const keys = this._rowKeys();
    const keyOf = (event) => keys.get(event.pid === undefined ? 0 : event.pid);
    const columns = (this.columns = new Columns(model, (e) => this.isShown(e), keyOf));
    const used = new Set();
    this.shownCount = 0;
    model.events.forEach((event, i) => {
      if (columns.col[i] < 0) return;
      used.add(event.pid === undefined ? 0 : event.pid);
      if (event.phase !== "enter" || !model.exitOf.has(event.seq)) this.shownCount++;
    });
    for (const one of [...model.lanes].reverse())
      if (used.has(one.key) && one.parent !== undefined) used.add(one.parent);
    this.rows = [];
    this.rowAt = new Map();
    let host = null;
    for (const one of model.lanes) {
      if (!used.has(one.key)) continue;
      if (one.host !== host) {
        host = one.host;
        this.rowAt.set(`h${host}`, this.rows.length);
        this.rows.push({ host, folded: options.collapsed.has(`h${host}`), count: 0 });
        this.hostRow = this.rows[this.rows.length - 1];
      }
      this.hostRow.count++;
      if (keys.get(one.key) !== `p${one.key}`) continue;
      this.rowAt.set(`p${one.key}`, this.rows.length);
      this.rows.push({ lane: one, folded: options.collapsed.has(`p${one.key}`) });
    }
    this.keys = keys;
    this._place();
    this._spans();
    this._lines();
    const width = this.left + this.x[columns.count] + 60;
    this.sizer.style.width = `${Math.max(width, 1)}px`;
    this.sizer.style.height = `${TOP + this.rows.length * ROW + 24}px`;
    this.draw();
  }

  // Where each column begins.
  _place() {
    const { columns, model } = this;
    const zoom = ZOOMS[this.options.zoom];
    const widths = new Float64Array(columns.count).fill(zoom.width || 18);
    if (!zoom.width)
      model.events.forEach((event, i) => {
        const c = columns.col[i];
        if (c >= 0) widths[c] = Math.max(widths[c], wantedWidth(event, zoom));
      });
    this.x = new Float64Array(columns.count + 1);
    const begins = new Set(columns.moments.map((moment) => moment.start));
    const gap = zoom.width ? Math.min(GAP, zoom.width) : GAP;
    let x = PAD;
    for (let c = 0; c < columns.count; c++) {
      if (begins.has(c) && c) x += gap;
      this.x[c] = x;
      x += widths[c];
    }
    this.x[columns.count] = x;
    this.gap = gap;
  }

  rowOf(event) {
    return this.rowAt.get(this.keys.get(event.pid === undefined ? 0 : event.pid));
  }

  _spans() {
    const { columns, model } = this;
    const colOf = (seq) => {
      const i = model.index.get(seq);
      return i === undefined ? -1 : columns.col[i];
    };
    this.arrows = new Spans();
    this.forks = new Spans();
    this.calls = new Spans();
    model.events.forEach((event, i) => {
      const c = columns.col[i];
      if (c < 0) return;
      if (event.phase === "receive" && event.cause) {
        const from = colOf(event.cause);
        if (from >= 0) this.arrows.add(from, c, event);
      }
      const exit = event.phase === "enter" ? model.exitOf.get(event.seq) : undefined;
      if (exit !== undefined && colOf(exit) >= 0) this.calls.add(c, colOf(exit), event);
    });
    this.firstSeen = new Map();
    for (const one of model.lanes) {
      if (one.parent === undefined || this.rowAt.get(this.keys.get(one.key)) === undefined) continue;
      const first = one.events.find((seq) => colOf(seq) >= 0);
      let fork = one.fork;
      if (fork === undefined || colOf(fork) < 0) fork = undefined;
      if (first === undefined || fork === undefined) continue;
      if (this.keys.get(one.key) === this.keys.get(one.parent)) continue;
      this.forks.add(colOf(fork), colOf(first), { fork, first });
    }
  }

  // The life of each process, coloured by the user it is; of a folded row, the whole of it.
  _lines() {
    const { columns, model } = this;
    this.lines = this.rows.map(() => []);
    const open = new Map();
    model.events.forEach((event, i) => {
      const c = columns.col[i];
      if (c < 0) return;
      const row = this.rowOf(event);
      const folded = this.rows[row].folded;
      const uid = folded ? -1 : event.uid === undefined ? -1 : event.uid;
      const line = open.get(row);
      if (line && line.uid === uid) {
        line.to = Math.max(line.to, c);
        return;
      }
      const fresh = { from: line ? line.to : c, to: c, uid };
      if (line) fresh.from = Math.min(line.to, c);
      open.set(row, fresh);
      this.lines[row].push(fresh);
    });
  }

  userClass(uid) {
    if (uid === 0) return "u-root";
    if (uid === this.model.users.slurm) return "u-slurm";
    if (uid < 0) return "u-none";
    const others = [...this.model.userNames.keys()].filter(
      (each) => each !== 0 && each !== this.model.users.slurm);
    return `u-${Math.max(0, others.indexOf(uid)) % 5}`;
  }

  columnAt(x) {
    let low = 0, high = this.columns.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.x[middle] < x) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  draw(whole = false) {
    if (!this.columns) return;
    const { box, svg, columns, left } = this;
    const width = whole ? left + this.x[columns.count] + 60 : box.clientWidth;
    const height = whole ? TOP + this.rows.length * ROW + 8 : box.clientHeight;
    const sx = whole ? 0 : box.scrollLeft, sy = whole ? 0 : box.scrollTop;
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const from = Math.max(0, this.columnAt(sx) - 1);
    const to = Math.min(columns.count, this.columnAt(sx + width - left) + 1);
    const first = Math.max(0, Math.floor(sy / ROW) - 1);
    const last = Math.min(this.rows.length, Math.ceil((sy + height - TOP) / ROW) + 1);
    const X = (c) => left + this.x[c] - sx;
    const Y = (row) => TOP + row * ROW - sy + ROW / 2;
    let there = 0;
    for (const i of columns.between(from, to)) {
      const row = this.rowOf(this.model.events[i]);
      if (row >= first && row < last) there++;
    }
    this.named = !ZOOMS[this.options.zoom].width && (whole || there <= MANY_NAMES);
    const out = [`<defs><clipPath id="area"><rect x="${left}" y="${TOP}" width="${width}" height="${height}"/></clipPath>` +
      '<clipPath id="axis"><rect x="' + left + `" y="0" width="${width}" height="${height}"/></clipPath>` +
      '<marker id="tip" viewBox="0 0 6 6" refX="5.4" refY="3" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6z" class="tip"/></marker></defs>'];
    this._drawMoments(out, X, from, to, width, height);
    out.push('<g clip-path="url(#area)">');
    this._drawMark(out, X, height);
    this._drawLines(out, X, Y, from, to, first, last, width);
    this._drawForks(out, X, Y, from, to);
    this._drawArrows(out, X, Y, from, to, height);
    this._drawEvents(out, X, Y, from, to, first, last);
    out.push("</g>");
    this._drawLabels(out, Y, first, last, height);
    svg.innerHTML = out.join("");
    this.drawn = { from, to, first, last };
  }

  _drawMoments(out, X, from, to, width, height) {
    const { moments } = this.columns;
    let low = 0, high = moments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (moments[middle].end <= from) low = middle + 1;
      else high = middle;
    }
    out.push('<g clip-path="url(#axis)">');
    let free = -1e9;
    for (let m = low; m < moments.length && moments[m].start < to; m++) {
      const { start, end, time_us } = moments[m];
      const x = X(start) - this.gap / 2, w = X(end) + (end === this.columns.count ? 8 : -this.gap / 2) - x;
      out.push(`<rect x="${x}" y="0" width="${Math.max(w, 1)}" height="${height}" class="${m % 2 ? "band odd" : "band"}"/>`);
      const text = Math.max(x, this.left) + 5;
      if (text < free) continue;
      const label = formatMoment(time_us);
      out.push(`<text x="${text}" y="17" class="time">${label}</text>`);
      const since = m ? time_us - moments[m - 1].time_us : 0;
      if (since) out.push(`<text x="${text}" y="32" class="since">+${formatUs(since)}</text>`);
      free = text + Math.max(label.length, since ? formatUs(since).length + 1 : 0) * 7 + 8;
    }
    this.marks.forEach((mark, number) => {
      for (const seq of mark.seqs) {
        const i = this.model.index.get(seq);
        const c = i === undefined ? -1 : this.columns.col[i];
        if (c >= from && c < to)
          out.push(`<path d="M${X(c)} ${TOP - 9}h12l-6 8z" class="tick" data-mark="${number}"/>`);
      }
    });
    out.push("</g>");
  }

  // The stretch of the run that shows what is broken.
  _drawMark(out, X, height) {
    const mark = this.marks[this.markShown];
    if (!mark) return;
    const cols = mark.seqs.map((seq) => this.model.index.get(seq)).filter((i) => i !== undefined)
      .map((i) => this.columns.col[i]).filter((c) => c >= 0);
    if (!cols.length) return;
    const x = X(Math.min(...cols)) - 4, end = X(Math.max(...cols)) + 24;
    out.push(`<rect x="${x}" y="${TOP}" width="${end - x}" height="${height}" class="breach"/>`);
  }

  _drawLines(out, X, Y, from, to, first, last, width) {
    for (let row = first; row < last; row++) {
      if (this.rows[row].host !== undefined)
        out.push(`<line x1="0" x2="${width}" y1="${Y(row) - ROW / 2}" y2="${Y(row) - ROW / 2}" class="rule"/>`);
      for (const line of this.lines[row]) {
        if (line.to < from || line.from > to) continue;
        out.push(`<line x1="${X(Math.max(line.from, from)) + 2}" x2="${X(Math.min(line.to, to)) + 4}" y1="${Y(row)}" y2="${Y(row)}" class="life ${this.userClass(line.uid)}${this.past ? " faint" : ""}"/>`);
      }
    }
  }

  _faint(seq) {
    return this.past !== null && !this.past.has(seq);
  }

  _drawForks(out, X, Y, from, to) {
    const { model, columns } = this;
    const col = (seq) => columns.col[model.index.get(seq)];
    const paths = { fork: "", "fork faint": "" };
    for (const { fork, first } of this.forks.seen(from, to)) {
      const parent = this.rowOf(model.at(fork)), child = this.rowOf(model.at(first));
      const kind = this._faint(first) || this._faint(fork) ? "fork faint" : "fork";
      paths[kind] += `M${X(col(fork)) + 5} ${Y(parent) + 5}V${Y(child)}H${X(col(first))}`;
    }
    for (const [kind, path] of Object.entries(paths)) if (path) out.push(`<path d="${path}" class="${kind}"/>`);
  }

  _drawArrows(out, X, Y, from, to, height) {
    const { model, columns } = this;
    const { named } = this;
    const col = (seq) => columns.col[model.index.get(seq)];
    const plain = new Map();
    for (const event of this.arrows.seen(from, to)) {
      const sent = model.at(event.cause);
      const y1 = Y(this.rowOf(sent)), y2 = Y(this.rowOf(event));
      if ((y1 < TOP - 50 && y2 < TOP - 50) || (y1 > height + 50 && y2 > height + 50)) continue;
      const x1 = X(col(sent.seq)) + (named ? 9 : 2), x2 = X(col(event.seq)) + 1;
      const bend = Math.min(60, Math.max(8, (x2 - x1) / 3)), down = y2 >= y1 ? 1 : -1;
      const hot = this.past !== null && this.past.has(event.seq) && this.past.has(sent.seq);
      const kind = `arrow${hot ? " hot" : this.past ? " faint" : ""}`;
      const path = `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2 - down * 8} ${x2} ${y2 - (y1 === y2 ? 0 : down * 3)}`;
      if (named) out.push(`<path d="${path}" class="${kind}" marker-end="url(#tip)"/>`);
      else plain.set(kind, (plain.get(kind) || "") + path);
    }
    for (const [kind, path] of plain) out.push(`<path d="${path}" class="${kind}"/>`);
  }

  _drawEvents(out, X, Y, from, to, first, last) {
    const { model } = this;
    const zoom = ZOOMS[this.options.zoom];
    for (const event of this.calls.seen(from, to)) {
      const row = this.rowOf(event);
      if (row < first || row >= last) continue;
      const exit = model.exitOf.get(event.seq), a = this.columns.col[model.index.get(event.seq)];
      const b = this.columns.col[model.index.get(exit)];
      out.push(`<rect x="${X(a)}" y="${Y(row) - 9}" width="${X(b) - X(a) + 6}" height="18" rx="3" class="during f-${event.family}${this._faint(exit) ? " faint" : ""}"/>`);
    }
    const plain = new Map();
    for (const i of this.columns.between(from, to)) {
      const event = model.events[i], row = this.rowOf(event);
      if (row < first || row >= last) continue;
      const x = X(this.columns.col[i]), y = Y(row);
      const alone = this.named || event.seq === this.selected || this.flagged.has(event.seq) || failed(event);
      if (alone) this._drawEvent(out, event, x, y, zoom);
      else {
        const kind = `${this._plainClass(event)}${this._faint(event.seq) ? " faint" : ""}`;
        plain.set(kind, (plain.get(kind) || "") + this._plainShape(event, x, y, zoom.width || 12));
      }
    }
    for (const [kind, path] of plain) out.push(`<path d="${path}" class="${kind}"/>`);
  }

  // Without names, all events of a kind are one path: thousands of elements would take long.
  _plainClass(event) {
    if (event.family === "message") return event.phase === "send" ? "sent" : "got";
    if (event.name === "exit" && event.family === "process") return "gone";
    return `f-${event.family}`;
  }

  _plainShape(event, x, y, width) {
    const w = Math.max(3, Math.min(10, width - 2)), half = w / 2;
    if (IN_BAR.has(event.family)) return `M${x} ${y - 8}h${w}v16h${-w}z`;
    if (event.family === "message") return `M${x} ${y}a${half} ${half} 0 1 0 ${w} 0a${half} ${half} 0 1 0 ${-w} 0z`;
    if (event.family === "state") return `M${x + half} ${y - half - 1}l${half} ${half + 1}l${-half} ${half + 1}l${-half} ${-half - 1}z`;
    if (event.name === "exit") return `M${x} ${y - half}l${w} ${w}m0 ${-w}l${-w} ${w}`;
    return `M${x} ${y - half}h${w}v${w}h${-w}z`;
  }

  // The event under a point, where events are no elements of their own.
  eventAt(clientX, clientY) {
    const place = this.svg.getBoundingClientRect();
    const x = clientX - place.x - this.left + this.box.scrollLeft;
    const row = Math.floor((clientY - place.y - TOP + this.box.scrollTop) / ROW);
    if (clientX - place.x < this.left || clientY - place.y < TOP) return undefined;
    const col = this.columnAt(x + 0.001) - 1;
    if (col < 0 || col >= this.columns.count) return undefined;
    for (const i of this.columns.between(col, col + 1))
      if (this.rowOf(this.model.events[i]) === row) return this.model.events[i].seq;
    return undefined;
  }

  _drawEvent(out, event, x, y, zoom) {
    const { seq, family } = event;
    const named = !zoom.width;
    let shape, label = named ? shortName(event) : "", labelX = x + 14, inBar = false, width = 10;
    if (IN_BAR.has(family)) {
      width = named ? barWidth(event, zoom.most) : Math.max(4, zoom.width - 2);
      shape = `<rect x="${x}" y="${y - 8}" width="${width}" height="16" rx="3" class="bar f-${family}"/>`;
      labelX = x + 5;
      inBar = true;
    } else if (family === "message") {
      shape = `<circle cx="${x + 5}" cy="${y}" r="3.6" class="${event.phase === "send" ? "sent" : "got"}"/>`;
    } else if (family === "state") {
      shape = `<path d="M${x + 6} ${y - 6}l6 6l-6 6l-6 -6z" class="f-state"/>`;
      labelX = x + 16;
    } else if (event.name === "exit") {
      shape = `<path d="M${x} ${y - 5}l9 10m0 -10l-9 10" class="gone"/>`;
      label = "";
    } else if (event.name === "fork") {
      shape = `<path d="M${x} ${y - 5}h6l4 5l-4 5h-6z" class="f-process"/>`;
      label = "";
    } else if (event.name === "become_user") {
      shape = `<path d="M${x} ${y - 5}l10 5l-10 5z" class="turned ${this.userClass(event.uid)}"/>`;
      label = named ? `is ${this.model.user(event.uid)}` : "";
    } else {
      shape = `<circle cx="${x + 5}" cy="${y}" r="4.4" class="f-process"/>`;
    }
    const mark = this.flagged.get(seq);
    const classes = ["event"];
    if (this.selected === seq) classes.push("selected");
    if (this._faint(seq)) classes.push("faint");
    if (mark !== undefined) classes.push("broken");
    if (failed(event)) classes.push("failed");
    out.push(`<g class="${classes.join(" ")}" data-seq="${seq}">`, shape);
    if (label) {
      const room = Math.floor((inBar ? width - 8 : zoom.beside) / CHAR);
      const text = label.length > room ? `${label.slice(0, Math.max(1, room - 1))}…` : label;
      if (!inBar) out.push(`<rect x="${labelX - 2}" y="${y - 7}" width="${text.length * CHAR + 3}" height="14" class="under"/>`);
      out.push(`<text x="${labelX}" y="${y + 4}" class="${inBar ? "in" : "beside"}">${escapeText(text)}</text>`);
    }
    if (mark !== undefined)
      out.push(`<circle cx="${x + width}" cy="${y - 8}" r="7" class="badge"/><text x="${x + width}" y="${y - 4.6}" class="number">${mark + 1}</text>`);
    out.push("</g>");
  }

  _drawLabels(out, Y, first, last, height) {
    const { left, model } = this;
    out.push(`<rect x="0" y="0" width="${left}" height="${height}" class="side"/>`,
      `<line x1="${left}" x2="${left}" y1="0" y2="${height}" class="rule"/>`,
      '<text x="10" y="17" class="corner">host, process</text>',
      `<text x="${left - 8}" y="17" class="corner end">pid</text>`);
    out.push(`<clipPath id="names"><rect x="0" y="${TOP}" width="${left}" height="${height}"/></clipPath><g clip-path="url(#names)">`);
    for (let row = first; row < last; row++) {
      const { host, lane, folded, count } = this.rows[row];
      const y = Y(row);
      if (host !== undefined) {
        const what = host === "simctl" ? "scenario: faults, log" : host;
        const sign = host === "simctl" ? "" : folded ? "▸ " : "▾ ";
        out.push(`<g class="name host" data-fold="h${escapeText(host)}" role="button"><rect x="0" y="${y - ROW / 2}" width="${left}" height="${ROW}"/>` +
          `<text x="8" y="${y + 4}">${sign}${escapeText(this._cut(what, left - 90))}</text>` +
          `<text x="${left - 8}" y="${y + 4}" class="end soft">${folded ? `${count} processes` : ""}</text></g>`);
        continue;
      }
      const indent = 20 + Math.min(lane.depth, 8) * 11;
      const fold = lane.children.length ? (folded ? "▸ " : "▾ ") : "";
      out.push(`<g class="name" data-fold="p${lane.key}" role="button"><rect x="0" y="${y - ROW / 2}" width="${left}" height="${ROW}"/>` +
        `<text x="${indent}" y="${y + 4}">${fold}${escapeText(this._cut(model.processName(lane), left - indent - 50))}</text>` +
        `<text x="${left - 8}" y="${y + 4}" class="end soft">${lane.pid ?? ""}</text>` +
        (this.onDot ? `<circle cx="9" cy="${y}" r="4" class="stop" data-dot="${lane.key}"><title>stop at all that this process does</title></circle>` : "") + "</g>");
    }
    out.push("</g>");
  }

  _cut(text, width) {
    const room = Math.max(4, Math.floor(width / CHAR));
    return text.length > room ? `${text.slice(0, room - 1)}…` : text;
  }

  // Scroll so that an event is seen; if it stands well inside already, nothing moves.
  show(seq, centre = false) {
    const i = this.model.index.get(seq);
    if (i === undefined || this.columns.col[i] < 0) return;
    const { box, left } = this;
    const x = this.x[this.columns.col[i]], y = this.rowOf(this.model.events[i]) * ROW;
    const width = box.clientWidth - left, height = box.clientHeight - TOP;
    if (centre || x < box.scrollLeft + 20 || x > box.scrollLeft + width - 170)
      box.scrollLeft = Math.max(0, x - width / 2);
    if (centre ? y < box.scrollTop || y > box.scrollTop + height - ROW : y < box.scrollTop + ROW || y > box.scrollTop + height - 2 * ROW)
      box.scrollTop = Math.max(0, y - height / 2);
  }
}
