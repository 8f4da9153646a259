// A page of a finished run: its events are in the file.

const packed = JSON.parse(document.getElementById("run").textContent);
globalThis.simctl = new Page(packed.page, unpack(packed.events));
