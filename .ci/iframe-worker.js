// The search of the site runs in a worker, which no browser gives to pages from the disk. There it runs in
// a hidden frame instead, so that nothing has to be fetched.
"use strict";
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const inside = (this.inside = frame.contentWindow);
      const load = (source) => new Promise((done, fail) => {
        const script = inside.document.createElement("script");
        Object.assign(script, { src: source, onload: done, onerror: fail });
        inside.document.documentElement.append(script);
      });
      inside.postMessage = (data) => {
        const told = new MessageEvent("message", { data });
        this.dispatchEvent(told);
        this.onmessage?.(told);
      };
      inside.importScripts = (...urls) => urls.reduce((before, each) => before.then(() => load(each)), Promise.resolve());
      this.ready = load(new URL(url, location.href).href);
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
