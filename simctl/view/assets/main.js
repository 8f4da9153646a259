// One page: its controls, its keys, and what its address says.

class Page {
  constructor(page, events) {
    this.page = page;
    this.options = {
      hidden: new Set(), bookkeeping: false, filter: null, filterText: "", zoom: NAMES,
      collapsed: new Set(),
    };
    this.byId = (id) => document.getElementById(id);
    this.load(events);
    this._controls();
    this._keys();
    addEventListener("hashchange", () => this._fromAddress());
    this._print();
  }

  // Take these events for the run; what was chosen stays as it was.
  load(events) {
    const { page, options } = this;
    const first = !this.model;
    this.model = new Model(events, page.header);
    const go = {
      seq: (seq) => this.select(seq, true),
      mark: (number) => this.showMark(number),
      overview: () => this.overview(),
    };
    if (first) {
      this.picture = new Picture(this.model, this.byId("box"), options, (at) => this._picked(at));
      this.panel = new Panel(this.byId("panel"), page, this.model, go);
      this._startZoom();
      this.folded = [...options.collapsed].join(" ");
    } else {
      this.picture.model = this.panel.model = this.model;
    }
    this.picture.setMarks(page.broken);
    this._families();
    this._jobStrip();
    this._layout();
    if (first) {
      this.reading = true;
      this.overview();
      this._toBroken();
      this.reading = false;
      this._fromAddress();
    }
  }

  // Names from the start where they can be read; of many processes, hosts alone.
  _startZoom() {
    const { model, options, page } = this;
    if (model.lanes.length > MANY_LANES) {
      for (const host of model.hosts) options.collapsed.add(`h${host}`);
      page.notes.push(`${counted(model.lanes.length, "process", "processes")}: the hosts are folded; click one to see its processes.`);
    }
    // What a daemon runs as scripts stands in its row, where they are many.
    for (const one of model.lanes)
      if (one.children.filter((child) => child.role === "script").length > MANY_SCRIPTS) options.collapsed.add(`p${one.key}`);
    if (model.events.length > 20000) options.zoom = 1;
    else if (model.events.length > 4000) options.zoom = 2;
  }

  _layout() {
    this.picture.layout();
    this.byId("count").textContent = `${this.picture.shownCount.toLocaleString("en")} shown of ${this.model.events.length.toLocaleString("en")} events`;
  }

  _families() {
    const box = this.byId("families");
    const here = new Set(this.model.events.map((event) => event.family));
    box.replaceChildren(...Object.entries(FAMILIES).filter(([family]) => here.has(family)).map(([family, name]) => {
      const input = element("input", { type: "checkbox", "data-family": family });
      input.checked = !this.options.hidden.has(family);
      input.addEventListener("change", () => {
        if (input.checked) this.options.hidden.delete(family);
        else this.options.hidden.add(family);
        this._changed();
      });
      return element("label", {}, input, element("span", { class: `dot f-${family}` }), name);
    }));
  }

  _jobStrip() {
    const { page } = this;
    const strip = this.byId("jobs");
    const most = 60;
    const chips = page.jobs.slice(0, most).map((job) =>
      element("button", { class: `chip ${job.tone}`, "data-job": job.id, title: job.why ? job.why.text : `job ${job.label} ${job.state} ${job.when}`,
        onclick: () => this.select(job.why ? job.why.seq : job.last, true) },
        element("b", {}, `job ${job.label}`), ` ${job.state}`,
        job.why ? element("i", {}, ` ${job.why.text}`) : ""));
    if (page.jobs.length > most) chips.push(element("button", { class: "chip", onclick: () => this.overview() }, `${page.jobs.length - most} more`));
    const marks = page.broken.map((mark, number) =>
      element("button", { class: "chip broken", "data-mark": number, title: mark.title, onclick: () => this.showMark(number) },
        element("span", { class: "number" }, String(number + 1)), element("b", {}, mark.what), ` ${mark.title}`));
    strip.replaceChildren(
      ...(page.broken.length || !page.verdict ? marks : [element("span", { class: `chip ${page.tone}` }, page.verdict)]), ...chips);
  }

  _controls() {
    const { options } = this;
    const filter = this.byId("filter");
    filter.addEventListener("input", () => {
      this.setFilter(filter.value);
      this._address();
    });
    const bookkeeping = this.byId("bookkeeping");
    bookkeeping.addEventListener("change", () => {
      options.bookkeeping = bookkeeping.checked;
      this._changed();
    });
    this.byId("closer").addEventListener("click", () => this.zoom(1));
    this.byId("farther").addEventListener("click", () => this.zoom(-1));
    this.byId("fold").addEventListener("click", () => {
      const all = this.model.hosts.every((host) => options.collapsed.has(`h${host}`));
      options.collapsed.clear();
      if (!all) for (const host of this.model.hosts) options.collapsed.add(`h${host}`);
      this._changed();
    });
    this.byId("theme").addEventListener("click", () => {
      const root = document.documentElement.dataset;
      const dark = root.theme ? root.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.theme = dark ? "light" : "dark";
    });
    this.byId("help").addEventListener("click", () => this.overview());
  }

  setFilter(text) {
    const { options } = this;
    const told = this.byId("told");
    options.filterText = text;
    this.byId("filter").classList.remove("wrong");
    told.textContent = "";
    if (!text.trim()) options.filter = null;
    else {
      try {
        options.filter = parsePattern(text, this.model.users, this.model.names);
        told.textContent = options.filter.note;
      } catch (error) {
        if (!(error instanceof PatternError)) throw error;
        this.byId("filter").classList.add("wrong");
        told.textContent = error.message;
        return;
      }
    }
    this._layout();
    if (options.filter && !this.picture.shownCount) told.textContent = `${told.textContent ? `${told.textContent}; ` : ""}no event matches`;
    if (this.picture.selected !== null) this.picture.show(this.picture.selected);
    else if (options.filter) this._toFirst();
  }

  // What broke is in sight from the start.
  _toBroken() {
    const seqs = this.page.broken.flatMap((mark) => mark.seqs).filter((seq) => this.model.index.has(seq));
    if (seqs.length) this.picture.show(Math.min(...seqs));
    this.picture.draw();
  }

  _toFirst() {
    const i = this.picture.columns.byCol[0];
    if (i !== undefined) this.picture.show(this.model.events[i].seq);
    this.picture.draw();
  }

  zoom(by) {
    const { options, picture, model } = this;
    const zoom = Math.min(ZOOMS.length - 1, Math.max(0, options.zoom + by));
    if (zoom === options.zoom) return;
    const kept = picture.selected ?? model.events[picture.columns.byCol[picture.columns.starts[Math.min(picture.columns.count - 1, picture.columnAt(picture.box.scrollLeft) + 1)]]]?.seq;
    options.zoom = zoom;
    this._layout();
    if (kept !== undefined) picture.show(kept, true);
    picture.draw();
    this._address();
  }

  _changed() {
    this._layout();
    if (this.picture.selected !== null) this.picture.show(this.picture.selected);
    this.picture.draw();
    this._address();
  }

  _picked(at) {
    if (at.seq !== undefined) this.select(at.seq);
    else if (at.mark !== undefined) this.showMark(at.mark);
    else if (at.fold !== undefined) {
      const { collapsed } = this.options;
      if (collapsed.has(at.fold)) collapsed.delete(at.fold);
      else collapsed.add(at.fold);
      this._changed();
    } else this.overview();
    this.picture.svg.focus({ preventScroll: true });
  }

  // Choose an event; what hides it is undone.
  select(seq, centre = false) {
    const { picture, model, options } = this;
    const i = model.index.get(seq);
    if (i === undefined) return;
    const event = model.events[i];
    picture.selected = seq;
    if (picture.columns.col[i] < 0) {
      options.hidden.delete(event.family);
      if (options.filter && !options.filter.test(event)) this._clearFilter();
      this._families();
      this._layout();
    }
    picture.past = model.past(seq);
    for (const each of model.followers.get(seq) || []) picture.past.add(each);
    // Of what neither comes of anything nor leads on, all stays lit.
    if (picture.past.size === 1) picture.past = null;
    picture.show(seq, centre);
    picture.draw();
    this.panel.event(seq);
    this._address();
  }

  _clearFilter() {
    this.options.filter = null;
    this.options.filterText = this.byId("filter").value = "";
    this.byId("told").textContent = "";
  }

  showMark(number) {
    const { picture, page, model } = this;
    const mark = page.broken[number];
    if (!mark) return;
    picture.markShown = number;
    picture.selected = null;
    const seqs = mark.seqs.filter((seq) => model.index.has(seq));
    if (seqs.some((seq) => picture.columns.col[model.index.get(seq)] < 0)) {
      this._clearFilter();
      this._layout();
    }
    picture.past = seqs.length ? new Set(seqs.flatMap((seq) => [...model.past(seq)])) : null;
    if (seqs.length) picture.show(Math.min(...seqs), true);
    picture.draw();
    this.panel.breach(number);
    this._address();
  }

  overview() {
    const { picture } = this;
    picture.selected = picture.past = null;
    picture.markShown = -1;
    picture.draw();
    this.panel.overview();
    this._address();
  }

  // Keys.

  _keys() {
    addEventListener("keydown", (key) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(key.target.tagName) && key.target.type !== "checkbox";
      if (typing) {
        if (key.key === "Escape") {
          this._clearFilter();
          this._layout();
          this.picture.svg.focus({ preventScroll: true });
        } else if (key.key === "Enter" && key.target.id === "filter") {
          this._selectFirst();
          this.picture.svg.focus({ preventScroll: true });
        }
        return;
      }
      if (key.ctrlKey || key.altKey || key.metaKey) return;
      const act = {
        ArrowLeft: () => this._walk(-1),
        ArrowRight: () => this._walk(1),
        ArrowUp: () => this._toCause(),
        ArrowDown: () => this._toFollower(),
        Escape: () => this.overview(),
        "/": () => this.byId("filter").focus(),
        "+": () => this.zoom(1),
        "=": () => this.zoom(1),
        "-": () => this.zoom(-1),
        n: () => this._toMark(1),
        p: () => this._toMark(-1),
        "?": () => this.overview(),
      }[key.key];
      if (act) {
        key.preventDefault();
        act();
      }
    });
  }

  _selectFirst() {
    const { model, picture, options } = this;
    const first = model.events.find((event, i) => picture.columns.col[i] >= 0 && (!options.filter || options.filter.test(event)));
    if (first) this.select(first.seq, true);
  }

  _walk(by) {
    const { model, picture } = this;
    if (picture.selected === null) {
      this._selectFirst();
      return;
    }
    const event = model.at(picture.selected);
    const row = picture.rowOf(event);
    for (let i = model.index.get(event.seq) + by; i >= 0 && i < model.events.length; i += by)
      if (picture.columns.col[i] >= 0 && picture.rowOf(model.events[i]) === row) {
        this.select(model.events[i].seq);
        return;
      }
  }

  _toCause() {
    const { model, picture } = this;
    const event = model.at(picture.selected);
    if (event && model.at(event.cause)) this.select(event.cause);
    else if (picture.selected === null) this._selectFirst();
  }

  _toFollower() {
    const { model, picture } = this;
    const next = (model.followers.get(picture.selected) || []).find((seq) => model.at(seq));
    if (next !== undefined) this.select(next);
    else if (picture.selected === null) this._selectFirst();
  }

  _toMark(by) {
    const { picture, page } = this;
    if (!page.broken.length) return;
    const at = picture.markShown < 0 ? (by > 0 ? -1 : 0) : picture.markShown;
    this.showMark((at + by + page.broken.length) % page.broken.length);
  }

  // The address: what is chosen, so that a link leads there.

  _address() {
    if (this.reading) return;
    const { options, picture } = this;
    const words = new URLSearchParams();
    if (picture.selected !== null) words.set("event", picture.selected);
    else if (picture.markShown >= 0) words.set("broken", picture.markShown + 1);
    if (options.filterText.trim()) words.set("filter", options.filterText);
    if (options.zoom !== NAMES) words.set("zoom", ZOOMS[options.zoom].name);
    if (options.hidden.size) words.set("hide", [...options.hidden].join(" "));
    if (options.bookkeeping) words.set("bookkeeping", "1");
    if (options.collapsed.size && options.collapsed.size < 50 && [...options.collapsed].join(" ") !== this.folded) words.set("fold", [...options.collapsed].join(" "));
    const hash = words.toString();
    this.written = hash ? `#${hash}` : "";
    try {
      history.replaceState(null, "", this.written || location.pathname + location.search);
    } catch {
      // Where a page may not change its address it goes without.
    }
  }

  _fromAddress() {
    if (location.hash === this.written || (!location.hash && !this.written)) return;
    const words = new URLSearchParams(location.hash.slice(1));
    const { options } = this;
    this.reading = true;
    const zoom = ZOOMS.findIndex((each) => each.name === words.get("zoom"));
    if (zoom >= 0) options.zoom = zoom;
    for (const family of (words.get("hide") || "").split(" ")) if (family in FAMILIES) options.hidden.add(family);
    if (words.get("bookkeeping")) options.bookkeeping = this.byId("bookkeeping").checked = true;
    if (words.has("fold")) options.collapsed = this.picture.options.collapsed = new Set(words.get("fold").split(" "));
    this._families();
    this.byId("filter").value = words.get("filter") || "";
    this.setFilter(this.byId("filter").value);
    this._layout();
    if (words.has("event")) this.select(Number(words.get("event")), true);
    else if (words.has("broken")) this.showMark(Number(words.get("broken")) - 1);
    this.reading = false;
    this._address();
  }

  // On paper stands all of it, if it is not too much.
  _print() {
    addEventListener("beforeprint", () => {
      if (this.picture.columns.count <= 1500) this.picture.draw(true);
    });
    addEventListener("afterprint", () => this.picture.draw());
  }
}
