// The clock and the chance of a page, and what it makes and saves. Clock and chance follow from the seed and from how much time the
// agent's actions have taken, as the answer that brought the page tells in its headers; what was opened without one goes on from where
// it was opened.
(() => {
  delete Element.prototype.requestPointerLock; // where the pointer is locked to an element, clicks wait for moves that never come

  const KEY = Symbol.for("agent-gym");
  const BEGINNING = Date.UTC(2026, 0, 1);

  function opened() {
    for (const other of [parent, opener]) {
      try { if (other && other !== window && other[KEY]) return other[KEY].told(); } catch { /* of another origin */ }
    }
    return [0, 0];
  }

  const stamp = performance.getEntriesByType("navigation")[0]?.serverTiming?.find(each => each.name === "agent-gym")?.description;
  const [seed, passed] = stamp ? stamp.split(" ").map(Number) : opened();

  let state = seed;
  Math.random = () => {
    let t = state += 0x6d2b79f5;
    t = Math.imul(t ^ t >>> 15, t | 1);
    t ^= t + Math.imul(t ^ t >>> 7, t | 61);
    return ((t ^ t >>> 14) >>> 0) / 4294967296;
  };

  // --- What time it is ---

  const began = BEGINNING + passed;
  let now = began;
  const since = () => now - began;
  const given = (what, name, get) => Object.defineProperty(what, name, {configurable: true, get});
  const Real = Date;
  Real.now = () => now;
  globalThis.Date = Real.prototype.constructor = new Proxy(Real, {
    apply: () => new Real(now).toString(),
    construct: (target, values, made) => Reflect.construct(target, values.length ? values : [now], made),
  });
  const format = Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, "format").get;
  given(Intl.DateTimeFormat.prototype, "format", function () {
    const told = format.call(this);
    return (date = now) => told(date);
  });
  const parts = Intl.DateTimeFormat.prototype.formatToParts;
  Intl.DateTimeFormat.prototype.formatToParts = function (date = now) { return parts.call(this, date); };
  Performance.prototype.now = since;
  given(Performance.prototype, "timeOrigin", () => began);
  given(Event.prototype, "timeStamp", since);

  // --- What is due ---

  const due = new Map(); // in the order in which it was asked for
  let count = 0;

  function ask(wait, run, every = 0) {
    due.set(++count, {at: now + wait, run, every});
    return count;
  }

  const timer = again => (what, wait, ...values) => {
    const each = Math.max(1, Math.trunc(wait) || 0);
    return ask(each, typeof what === "function" ? () => what.apply(window, values) : () => (0, eval)(String(what)), again ? each : 0);
  };
  const forget = id => { due.delete(Number(id)); };
  globalThis.setTimeout = timer(false);
  globalThis.setInterval = timer(true);
  globalThis.requestAnimationFrame = what => ask(16 - now % 16, () => what(since()));
  globalThis.requestIdleCallback = what => ask(1, () => what({didTimeout: false, timeRemaining: () => 50}));
  globalThis.clearTimeout = globalThis.clearInterval = globalThis.cancelAnimationFrame = globalThis.cancelIdleCallback = forget;

  const {port1, port2} = new MessageChannel();
  const waiting = [];
  port1.onmessage = () => waiting.shift()();
  const turn = () => new Promise(done => { waiting.push(done); port2.postMessage(0); });

  // --- What it saves ---

  const MOST = 2000000;
  const made = new Map(); // blobs, by their URLs
  const saved = []; // links to them that were clicked: the name to save under, and what
  const create = URL.createObjectURL, revoke = URL.revokeObjectURL;
  URL.createObjectURL = what => {
    const url = create.call(URL, what);
    if (what instanceof Blob) made.set(url, what);
    return url;
  };
  URL.revokeObjectURL = url => { ask(1, () => { made.delete(url); revoke.call(URL, url); }); };

  async function save(link, event) {
    const {href, download} = link, blob = made.get(href);
    if (!blob || !link.hasAttribute("download")) return;
    await turn(); // whoever else listens may prevent it
    if (!event?.defaultPrevented) saved.push([download, blob]);
  }

  addEventListener("click", event => {
    const link = event.composedPath().find(each => each.localName === "a");
    if (link) save(link, event);
  }, true);
  const {click} = HTMLElement.prototype, {dispatchEvent} = EventTarget.prototype;
  HTMLElement.prototype.click = function () {
    if (this.localName === "a" && !this.isConnected) save(this);
    return click.call(this);
  };
  EventTarget.prototype.dispatchEvent = function (event) {
    if (this?.localName === "a" && !this.isConnected && event.type === "click") save(this, event);
    return dispatchEvent.call(this ?? window, event);
  };

  async function taken() {
    const told = [];
    for (const [name, blob] of saved.splice(0)) {
      const bytes = blob.size <= MOST ? new Uint8Array(await blob.arrayBuffer()) : null;
      told.push([name, bytes && btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(""))]);
    }
    return told;
  }

  // Lets time pass here and in the frames within; gives how many things were due, and what was saved.
  async function pass(time) {
    const within = Array.from(frames).flatMap(frame => { try { return frame[KEY] ?? []; } catch { return []; } });
    const until = now + time;
    let done = 0;
    for (;;) {
      let first = null;
      for (const [id, each] of due) if (each.at <= until && !(first?.at <= each.at)) first = {id, ...each};
      if (!first) break;
      now = first.at;
      if (first.every) due.get(first.id).at += first.every;
      else due.delete(first.id);
      try { first.run(); } catch (error) { reportError(error); }
      done++;
      await turn(); // what that has set going
    }
    now = until;
    const told = {due: done, saved: saved.length ? await taken() : []};
    for (const clock of within) {
      const {due, saved} = await clock.pass(time);
      told.due += due;
      told.saved.push(...saved);
    }
    return told;
  }

  Object.defineProperty(window, KEY, {value: {pass, told: () => [seed, now - BEGINNING]}});
})();
