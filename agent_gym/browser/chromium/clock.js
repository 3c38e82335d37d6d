// The clock and the chance of a page. Both follow from the seed and from how much time the agent's actions have taken, as the answer
// that brought the page tells in its headers; what was opened without one goes on from where it was opened.
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
  const turn = () => new Promise(done => { port1.onmessage = done; port2.postMessage(0); });

  // Lets time pass here and in the frames within; gives how many things were due.
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
    for (const clock of within) done += await clock.pass(time);
    return done;
  }

  Object.defineProperty(window, KEY, {value: {pass, told: () => [seed, now - BEGINNING]}});
})();
