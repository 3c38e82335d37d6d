// The clock and the chance of a page, and what it makes and saves. Clock and chance follow from the seed and from how much time the
// agent's actions have taken, as the answer that brought the page tells in its headers; what was opened without one goes on from where
// it was opened. What this goes on with later it takes hold of now: a page may change whatever stands in its world.
(() => {
  delete Element.prototype.requestPointerLock; // where the pointer is locked to an element, clicks wait for moves that never come

  const KEY = "agent-gym";
  const {apply, construct} = Reflect, {max, trunc} = Math, {fromCharCode} = String, Later = Promise, Bytes = Uint8Array;
  const encode = btoa, run = eval, report = reportError.bind(window);
  const held = (what, name) => {
    const {get, value} = Object.getOwnPropertyDescriptor(what, name);
    return get ? each => apply(get, each, []) : (each, ...values) => apply(value, each, values);
  };
  const frames = held(window, "length"), post = held(MessagePort.prototype, "postMessage");
  const size = held(Blob.prototype, "size"), read = held(Blob.prototype, "arrayBuffer");

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
  const random = () => {
    let t = state += 0x6d2b79f5;
    t = Math.imul(t ^ t >>> 15, t | 1);
    t ^= t + Math.imul(t ^ t >>> 7, t | 61);
    return (t ^ t >>> 14) >>> 0;
  };
  Math.random = () => random() / 4294967296;
  const filled = held(Crypto.prototype, "getRandomValues"), hexadecimal = held(Number.prototype, "toString");
  Crypto.prototype.getRandomValues = function (array) {
    filled(this, array); // which says what it does not take
    const bytes = new Bytes(array.buffer, array.byteOffset, array.byteLength);
    for (let at = 0; at < bytes.length; at++) bytes[at] = random();
    return array;
  };
  Crypto.prototype.randomUUID = () => {
    let text = "";
    for (let at = 0; at < 36; at++) {
      const digit = random() & 15;
      text += at === 8 || at === 13 || at === 18 || at === 23 ? "-" : hexadecimal(at === 14 ? 4 : at === 19 ? digit & 3 | 8 : digit, 16);
    }
    return text;
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
    construct: (target, values, made) => construct(target, values.length ? values : [now], made),
  });
  const format = Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, "format").get;
  given(Intl.DateTimeFormat.prototype, "format", function () {
    const told = format.call(this);
    return (date = now) => told(date);
  });
  const parts = Intl.DateTimeFormat.prototype.formatToParts;
  Intl.DateTimeFormat.prototype.formatToParts = function (date = now) { return parts.call(this, date); };
  given(Event.prototype, "timeStamp", since);
  given(AnimationTimeline.prototype, "currentTime", since);

  const two = number => `${number < 10 ? "0" : ""}${number}`;
  const opening = new Real(began);
  const modified = `${two(opening.getMonth() + 1)}/${two(opening.getDate())}/${opening.getFullYear()} `
    + `${two(opening.getHours())}:${two(opening.getMinutes())}:${two(opening.getSeconds())}`;
  given(Document.prototype, "lastModified", () => modified);
  globalThis.File = File.prototype.constructor = new Proxy(File, {
    construct: (target, values, made) => {
      if (values.length > 1) values[2] = {lastModified: now, ...values[2]};
      return construct(target, values, made);
    },
  });
  if (globalThis.Temporal) {
    const {Now, Instant} = Temporal, {timeZoneId} = Now;
    const here = zone => Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(zone ?? timeZoneId());
    Now.instant = () => Instant.fromEpochMilliseconds(now);
    Now.zonedDateTimeISO = here;
    Now.plainDateTimeISO = zone => here(zone).toPlainDateTime();
    Now.plainDateISO = zone => here(zone).toPlainDate();
    Now.plainTimeISO = zone => here(zone).toPlainTime();
  }

  // --- How long it took: nothing, since the clock stands still while a page loads ---

  Performance.prototype.now = since;
  given(Performance.prototype, "timeOrigin", () => began);
  delete Performance.prototype.memory;
  const mark = held(Performance.prototype, "mark"), measure = held(Performance.prototype, "measure");
  Performance.prototype.mark = function (name, more) { return mark(this, name, {startTime: since(), ...more}); };
  Performance.prototype.measure = function (name, from, end) {
    if (typeof from === "object" && from) return measure(this, name, "end" in from || "duration" in from ? from : {...from, end: since()});
    return measure(this, name, {start: from, end: end ?? since()});
  };
  const TIMED = ["LargestContentfulPaint", "LayoutShift", ...["", "Element", "Event", "LongAnimationFrame", "LongTask", "Navigation", "Paint", "Resource", "Script"]
    .map(kind => `Performance${kind}Timing`)];
  for (const kind of TIMED) {
    const what = globalThis[kind]?.prototype ?? {};
    for (const name of Object.keys(what)) {
      if (kind === "PerformanceTiming" && name !== "toJSON") given(what, name, () => began);
      else if (/(?:Start|End|Interactive|Complete|Time|Timestamp|Duration)$/.test(name)) given(what, name, () => 0);
    }
  }
  given(PerformanceNavigationTiming.prototype, "confidence", () => null); // which the browser makes up
  const type = held(PerformanceEntry.prototype, "entryType");
  for (const name of ["startTime", "duration", "navigationId"]) {
    const told = held(PerformanceEntry.prototype, name);
    given(PerformanceEntry.prototype, name, function () { return name !== "navigationId" && /^(?:mark|measure)$/.test(type(this)) ? told(this) : 0; });
  }
  for (const kind of ["Performance", "PerformanceEntry", ...TIMED]) {
    const what = globalThis[kind]?.prototype ?? {};
    if (Object.hasOwn(what, "toJSON")) what.toJSON = function () {
      const told = {};
      for (const name in this) if (typeof this[name] !== "function") told[name] = this[name];
      return told;
    };
  }

  // --- What is due ---

  const known = {__proto__: null}; // by its number
  const due = []; // a heap of it: what is due next stands first; what was forgotten stays until then
  let count = 0;
  const before = (one, other) => one.at < other.at || (one.at === other.at && one.number < other.number);

  function put(each) {
    let at = due.length;
    for (let up; at && before(each, due[up = (at - 1) >> 1]); at = up) due[at] = due[up];
    due[at] = each;
  }

  function next() {
    const first = due[0], last = due[due.length - 1];
    due.length--;
    let at = 0;
    for (let down; (down = 2 * at + 1) < due.length; at = down) {
      if (down + 1 < due.length && before(due[down + 1], due[down])) down++;
      if (!before(due[down], last)) break;
      due[at] = due[down];
    }
    if (due.length) due[at] = last;
    return first;
  }

  function ask(wait, run, every = 0) {
    put(known[++count] = {number: count, at: now + wait, run, every});
    return count;
  }

  const timer = again => (what, wait, ...values) => {
    const each = max(1, trunc(wait) || 0);
    return ask(each, typeof what === "function" ? () => apply(what, window, values) : () => (0, run)(`${what}`), again ? each : 0);
  };
  const forget = number => {
    const each = known[number];
    if (each) each.run = null;
    delete known[number];
  };
  globalThis.setTimeout = timer(false);
  globalThis.setInterval = timer(true);
  globalThis.requestAnimationFrame = what => ask(16 - now % 16, () => what(since()));
  globalThis.requestIdleCallback = what => ask(1, () => what({didTimeout: false, timeRemaining: () => 50}));
  globalThis.clearTimeout = globalThis.clearInterval = globalThis.cancelAnimationFrame = globalThis.cancelIdleCallback = forget;

  const {port1, port2} = new MessageChannel();
  const waiting = {__proto__: null};
  let turns = 0, taking = 0;
  port1.onmessage = () => {
    const done = waiting[taking];
    delete waiting[taking++];
    done();
  };
  const own = () => new Later(done => { waiting[turns++] = done; post(port2, 0); });

  // --- What it saves ---

  const MOST = 2000000;
  const made = {__proto__: null}; // blobs, by their URLs
  let saved = []; // links to them that were clicked: the name to save under, and what
  const create = URL.createObjectURL, revoke = URL.revokeObjectURL;
  URL.createObjectURL = what => {
    const url = create.call(URL, what);
    if (what instanceof Blob) made[url] = what;
    return url;
  };
  URL.revokeObjectURL = url => { ask(1, () => { delete made[url]; revoke.call(URL, url); }); };

  async function save(link, event) {
    const {href, download} = link, blob = made[href];
    if (!blob || !link.hasAttribute("download")) return;
    await own(); // whoever else listens may prevent it
    if (!event?.defaultPrevented) saved[saved.length] = [download, blob];
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
    const told = saved;
    saved = [];
    for (let at = 0; at < told.length; at++) {
      const blob = told[at][1];
      told[at][1] = null;
      if (size(blob) > MOST) continue;
      const bytes = new Bytes(await read(blob));
      let text = "";
      for (let each = 0; each < bytes.length; each++) text += fromCharCode(bytes[each]);
      told[at][1] = encode(text);
    }
    return told;
  }

  const clock = at => { try { return window[at][KEY]; } catch { return null; /* of another origin */ } };

  // Lets time pass here and in the frames within; gives how many things were due, and what was saved. A frame that a script removes
  // meanwhile has no turns of its own any more: it takes those of the outermost.
  async function pass(time, turn = own) {
    const within = [];
    for (let at = 0; at < frames(window); at++) within[at] = clock(at);
    const until = now + time;
    let done = 0;
    while (due.length && due[0].at <= until) {
      const first = next();
      if (!first.run) continue;
      now = first.at;
      if (first.every) {
        first.at += first.every;
        put(first);
      } else delete known[first.number];
      try { first.run(); } catch (error) { report(error); }
      done++;
      await turn(); // what that has set going
    }
    now = until;
    const told = {due: done, saved: saved.length ? await taken() : []};
    for (let at = 0; at < within.length; at++) {
      const theirs = await within[at]?.pass(time, turn);
      told.due += theirs?.due ?? 0;
      for (let each = 0; each < (theirs?.saved.length ?? 0); each++) told.saved[told.saved.length] = theirs.saved[each];
    }
    return told;
  }

  Object.defineProperty(window, KEY, {value: Object.freeze({pass, told: () => [seed, now - BEGINNING]})});
})();
