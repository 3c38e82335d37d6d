"use strict";
// The viewer: a list of episodes, one of them step by step, two side by side. Everything recorded is shown as text, never as markup,
// and only what can be seen is drawn, so that thousands of steps stay quick. Where one is stands in the address after "#".
(() => {
  const byId = (id) => document.getElementById(id);
  const index = JSON.parse(byId("index").textContent);
  const known = new Map(index.episodes.map((row, number) => [row.id, { ...row, number }]));
  const narrow = matchMedia("(max-width: 45rem)");

  // Elements

  function h(tag, ...parts) { // h("div.head", { title: "…" }, "text", element, [more]); what is null, false or empty is left out
    const [name, ...classes] = tag.split(".");
    const element = document.createElement(name);
    if (classes.length) element.className = classes.join(" ");
    for (const part of parts.flat(Infinity)) {
      if (part === undefined || part === null || part === false || part === "") continue;
      if (typeof part !== "object" || part instanceof Node) element.append(part);
      else for (const [key, value] of Object.entries(part)) put(element, key, value);
    }
    return element;
  }
  function put(element, name, value) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }

  const plain = (word) => word.replaceAll("_", " ");
  const upper = (word) => word[0].toUpperCase() + word.slice(1);
  const count = (number, one) => `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;
  const textOf = (passage) => (Array.isArray(passage) ? passage[0] : passage ?? ""); // a passage is a text, or a text and how much is cut
  const cut = (left) => left > 0 && h("p.note", `${count(left, "more character")} left out here; the trajectory store has them.`);
  const box = (label, ...content) => h("div.text", { tabindex: "0", role: "region", "aria-label": label }, content);
  const text = (passage, label) => [box(label, textOf(passage)), cut(Array.isArray(passage) ? passage[1] : 0)];
  const button = (label, click, attributes) => h("button", { type: "button", click, ...attributes }, label);
  const link = (label, click) => button(label, click, { class: "plain" });
  const key = (name) => h("kbd", name);
  const badge = (word, tone) => h(`span.badge.${tone ?? index.tones[word] ?? "care"}`, plain(word));
  const titled = (title, ...content) => [h("h3", title), ...content];
  const facts = (pairs) => h("dl.facts-list", pairs.map(([name, value]) => [h("dt", plain(name)), h("dd", value)]));
  const say = (words) => { byId("said").textContent = words; };
  const show = (...content) => byId("app").replaceChildren(...h("div", content).childNodes);

  // Differences, by Myers' greedy algorithm (An O(ND) Difference Algorithm and Its Variations, 1986), over lines and over words

  const MOST_EDITS = 400;
  const FOLDED_FROM = 3;
  const FOLDED_CHARACTERS = 300;

  function edits(a, b) { // [[sign, item], …]: 0 in both, -1 only in a, 1 only in b
    let head = 0;
    while (head < a.length && head < b.length && a[head] === b[head]) head++;
    let tail = 0;
    while (tail < Math.min(a.length, b.length) - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
    const signed = (sign, items) => items.map((item) => [sign, item]);
    const [left, right] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
    const middle = shortest(left, right) ?? [...signed(-1, left), ...signed(1, right)];
    return [...signed(0, a.slice(0, head)), ...middle, ...signed(0, a.slice(a.length - tail))];
  }

  function shortest(a, b) { // null where there is too little in common to be worth looking for
    const most = Math.min(a.length + b.length, MOST_EDITS);
    const reached = new Int32Array(2 * most + 2);
    const before = [];
    const down = (k, d, far) => k === -d || (k !== d && far[most + k - 1] < far[most + k + 1]);
    for (let d = 0; d <= most; d++) {
      before.push(reached.slice());
      for (let k = -d; k <= d; k += 2) {
        let x = down(k, d, reached) ? reached[most + k + 1] : reached[most + k - 1] + 1;
        while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
        reached[most + k] = x;
        if (x >= a.length && x - k >= b.length) return walkedBack(d);
      }
    }
    return null;

    function walkedBack(last) {
      const found = [];
      let [x, y] = [a.length, b.length];
      for (let d = last; d > 0; d--) {
        const inserted = down(x - y, d, before[d]);
        const k = x - y + (inserted ? 1 : -1);
        const from = before[d][most + k];
        while (x > from && y > from - k) { x--; y--; found.push([0, a[x]]); }
        found.push(inserted ? [1, b[--y]] : [-1, a[--x]]);
      }
      while (x > 0) found.push([0, a[--x]]);
      return found.reverse();
    }
  }

  const tokens = (string) => string.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];

  function marked(before, after, side) { // side: -1 what is left or was, 1 right, 0 both in one text
    let found = edits(tokens(before), tokens(after));
    const shared = found.reduce((sum, [sign, token]) => sum + (sign === 0 && token.trim() ? token.length : 0), 0);
    if (shared < Math.min(before.length, after.length) / 4) found = [[-1, before], [1, after]];
    const runs = [];
    for (const [sign, token] of found) {
      if (side !== 0 && sign === -side) continue;
      if (runs.at(-1)?.sign === sign) runs.at(-1).said += token;
      else runs.push({ sign, said: token });
    }
    return runs.filter(({ said }) => said).map(({ sign, said }) => (sign === 0 ? said : h(sign < 0 ? "del" : "ins", said)));
  }

  function compared(before, after, side, whole) { // lines: what differs is marked, what does not is folded
    const blocks = [];
    for (const [sign, line] of edits(before, after)) {
      if (!blocks.length || (sign === 0) !== blocks.at(-1).same) blocks.push({ same: sign === 0, [-1]: "", 0: "", 1: "", lines: 0 });
      blocks.at(-1)[sign] += `${line}\n`;
      blocks.at(-1).lines++;
    }
    return blocks.map((block) => {
      if (!block.same) return marked(block[-1], block[1], side);
      if (whole || (block.lines < FOLDED_FROM && block[0].length < FOLDED_CHARACTERS)) return block[0];
      const fold = link(`⋯ ${count(block.lines, "line")} ${side === 0 ? "as before" : "the same"}`, () => fold.replaceWith(block[0]));
      fold.classList.add("fold");
      return fold;
    });
  }

  // Where one is: the address after "#"

  const PLACE = ["view", "a", "b", "at", "q", "outcome", "family", "policy", "run", "sort", "find", "whole", "theme"];
  let place = {};
  let settling = 0;

  function parse() {
    const given = new URLSearchParams(location.hash.slice(1));
    return Object.fromEntries(PLACE.filter((name) => given.get(name)).map((name) => [name, given.get(name)]));
  }
  const address = () => `#${new URLSearchParams(Object.entries(place).filter(([, value]) => value))}`;
  function settle() {
    clearTimeout(settling);
    settling = 0;
    history.replaceState(null, "", address());
  }
  function keep(changes) { // browsers allow only so many changes of the address a second
    Object.assign(place, changes);
    settling ||= setTimeout(settle, 200);
  }
  function go(changes) {
    if (settling) settle();
    Object.assign(place, changes);
    history.pushState(null, "", address());
    draw();
  }
  const list = () => go({ view: "", b: "", at: "", find: "" });
  const open = (id, at) => go({ view: "episode", a: id, b: "", at: at === undefined ? "" : String(at), find: "" });
  const compare = (a, b) => go({ view: "compare", a, b, at: "", find: "" });

  // Episodes, unpacked when they are needed

  const MOST_LOADED = 8;
  const loaded = new Map(); // the newest last

  async function unpack(row) {
    const packed = atob(byId(`episode-${row.number}`).textContent);
    const bytes = new Uint8Array(packed.length);
    for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return { ...JSON.parse(await new Response(stream).text()), row };
  }
  function load(id) {
    const found = loaded.get(id) ?? unpack(known.get(id));
    loaded.delete(id);
    loaded.set(id, found);
    if (loaded.size > MOST_LOADED) loaded.delete(loaded.keys().next().value);
    return found;
  }

  const lines = (episode, step) => (step?.obs ?? []).map((line) => episode.lines[line]);
  const argument = ([name, value]) => `${name}=${JSON.stringify(textOf(value))}`;
  const given = (step) => step.inline ?? (step.arguments ?? []).map(argument).join(", ");
  function called(step) {
    if (step.call) return `${step.call}(${given(step)})`;
    return step.status ? `could not be read: ${textOf(step.given) || "(nothing)"}` : "reset";
  }
  function targetOf(episode, step, before) { // what a call's bid stood for on the page before, as an outline says it: [4] link "Orders"
    const bid = /\bbid="(\w+)"/.exec(given(step))?.[1];
    const line = bid && lines(episode, before).findLast((one) => one.includes(`[${bid}] `));
    return line?.slice(line.indexOf(`[${bid}] `)).split(" · [")[0].slice(`[${bid}] `.length);
  }
  const retried = (step) => (step.attempts ?? []).length > 1 || (step.attempts ?? []).some((attempt) => attempt.fault);

  // Which steps a change came from. The record tells what changed at the end of an episode, and of each step whether anything did.

  const MOST_WRITES = 200;

  function origins(episode) { // by change: steps, and whether its ids single them out
    if (episode.origins) return episode.origins;
    const writes = episode.steps.filter((step) => step.changed);
    const ids = (step) => called(step).match(/[\p{L}\p{N}_-]*\d{4,}[\p{L}\p{N}_-]*/gu) ?? [];
    const said = writes.slice(0, MOST_WRITES).map((step) => ({ step, ids: ids(step), result: textOf(step.result) }));
    const origin = (change) => {
      const values = new Set([change.key, ...change.fields.flatMap(({ before, after }) => [textOf(before), textOf(after)])]);
      const alike = ({ ids: named }) => named.length > 0 && named.every((id) => values.has(id));
      const fits = (one) => one.result.includes(change.key) || one.ids.includes(change.key) || alike(one);
      const fitting = said.filter(fits).map(({ step }) => step);
      return { steps: fitting.length ? fitting : writes, sure: writes.length === 1, fitting: fitting.length > 0 };
    };
    episode.origins = new Map(episode.changes.map((change) => [change, origin(change)]));
    return episode.origins;
  }

  // A scrolling box of many rows, of which only those in sight exist

  function track(attributes, rem, drawRow, choose) {
    const inner = h("div");
    const outer = h("div.track", { role: "listbox", tabindex: "0", ...attributes }, inner);
    const height = rem * parseFloat(getComputedStyle(document.documentElement).fontSize);
    let [items, picked] = [[], -1];
    function drawn(item, position) {
      const row = drawRow(item);
      const described = { id: `entry-${item}`, role: "option", "aria-selected": String(item === picked), "aria-posinset": position + 1 };
      for (const [name, value] of Object.entries({ ...described, "aria-setsize": items.length })) put(row, name, value);
      row.addEventListener("click", () => choose(item));
      row.style.top = `${position * height}px`;
      row.style.height = `${height}px`;
      return row;
    }
    function update() {
      const first = Math.max(0, Math.floor(outer.scrollTop / height) - 5);
      const last = first + Math.ceil((outer.clientHeight || 800) / height) + 10;
      inner.replaceChildren(...items.slice(first, last).map((item, offset) => drawn(item, first + offset)));
    }
    outer.addEventListener("scroll", update);
    new ResizeObserver(update).observe(outer);
    return {
      outer,
      items: () => items,
      set(chosen) {
        items = chosen;
        inner.style.height = `${items.length * height}px`;
        update();
      },
      pick(item) {
        picked = item;
        const top = items.indexOf(item) * height;
        if (top < outer.scrollTop + height) outer.scrollTop = top - height;
        else if (top + 2 * height > outer.scrollTop + outer.clientHeight) outer.scrollTop = top + 2 * height - outer.clientHeight;
        outer.setAttribute("aria-activedescendant", `entry-${item}`);
        update();
      },
    };
  }

  function walking(bar, end, at, pick, worth) { // the keys where there are steps; worth says which of them n and p go to
    function move(by) {
      const items = bar.items();
      const here = items.indexOf(at());
      const next = here >= 0 ? here + by : by > 0 ? items.findIndex((item) => item > at()) : items.findLastIndex((item) => item < at());
      if (next >= 0 && next < items.length) pick(items[next]);
    }
    function leap(by) {
      for (let to = at() + by; to >= 0 && to <= end; to += by) if (worth(to)) return pick(to);
      return say("There is no other.");
    }
    const whole = () => { keep({ whole: place.whole ? "" : "1" }); drawPlace(); };
    return {
      j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1), Home: () => pick(0), End: () => pick(end),
      e: () => pick(end), n: () => leap(1), p: () => leap(-1), o: whole, Escape: list,
    };
  }

  const turning = () => h("span.turn", button("← Previous", () => keys.k()), button("Next →", () => keys.j()));

  // What is shown of a step

  const signs = (step) => [
    retried(step) && h("span", { title: "several attempts, or a fault in one" }, "↻"),
    step.changed && h("span", { title: "the state changed" }, "✎"),
    step.reached && h("span.good", { title: `reached ${step.reached.map(plain).join(", ")}` }, "◆"),
    step.reward && h("span", { title: "reward" }, step.reward),
    step.status && step.tone !== "good" && badge(step.status, step.tone),
  ];

  const marks = (step) => step.status && h("span.marks",
    badge(step.status, step.tone), h("span", `reward ${step.reward ?? "0"}`), step.changed && h("span", "✎ state changed"),
    step.reached && h("span.good", `◆ reached ${step.reached.map(plain).join(", ")}`));

  const callOf = (step, target) => [
    h("code.call", step.call ? [h("b", step.call), step.arguments ? "" : `(${given(step)})`] : called(step)),
    target && h("p.note", "on ", h("code", target)),
    step.arguments && h("dl.arguments", step.arguments.map(([name, value]) => [h("dt", name), h("dd", text(value, name))])),
    step.reason && h("p.bad", step.reason),
  ];

  const effectOf = ({ effect, took_effect: took }) => (effect === "read" ? "reads" : `${plain(effect)}, took ${took ? "" : "no "}effect`);

  const attemptsOf = (step) => titled(count(step.attempts.length, "attempt"), h("ol.attempts", step.attempts.map((attempt) => h("li",
    h("div.head",
      h("span", `attempt ${attempt.attempt}`), badge(attempt.status, attempt.tone),
      attempt.tool && h("span", "by ", h("code", attempt.tool)),
      attempt.waited && h("span", `after waiting ${attempt.waited}`),
      attempt.fault && h("span.care", `injected fault: ${plain(attempt.fault)}`),
      attempt.after && h("span", `retry after ${attempt.after}`),
      attempt.effect && h("span", effectOf(attempt)),
      attempt.from_cache && h("span", "from the cache"),
      attempt.key && h("span", "key ", h("code", attempt.key)),
      h("span", attempt.took)),
    attempt.result && text(attempt.result, "Result of this attempt"),
    attempt.error && text(attempt.error, "Error")))));

  function pictureOf(step) {
    const packed = byId(`picture-${step.picture}`);
    const shown = packed
      ? h("img.picture", { src: `data:image/png;base64,${packed.textContent}`, alt: `The page after step ${step.step}` })
      : h("p.note", "The picture of this step is left out of this file, which would be too large; the trajectory store has it.");
    return titled("Page", shown);
  }

  function changeOf(change, told) {
    function value({ before, after, same }) {
      const [old, fresh] = [textOf(before), textOf(after)];
      if (same || change.kind === "added") return fresh.includes("\n") ? box("Value", fresh) : fresh;
      if (old.includes("\n") || fresh.includes("\n")) return box("Value", compared(old.split("\n"), fresh.split("\n"), 0, false));
      return change.kind === "removed" ? h("del", old) : [h("del", old), " → ", h("ins", fresh)];
    }
    const shown = (field) => [h("dt", field.name || "value"), h("dd", value(field))];
    const rest = change.fields.filter((field) => field.same);
    return h("div.change",
      h("div.head", badge(change.kind, { added: "good", removed: "bad" }[change.kind]), h("b", change.where), h("code", change.key), told),
      h("dl", change.fields.filter((field) => !field.same).map(shown)),
      rest.length > 0 && h("details.same", h("summary", `${count(rest.length, "field")} as before`), h("dl", rest.map(shown))));
  }

  function changedIn(episode, step) {
    const here = [...origins(episode)].filter(([, from]) => from.steps.includes(step));
    const sure = here.filter(([, from]) => from.sure || from.fitting);
    return titled("The state changed", sure.map(([change, from]) => changeOf(change, !from.sure && h("span.note", "by its ids"))),
      sure.length < here.length && h("p.note", "Which of the changes at the end are this step's, its ids do not tell."),
      !here.length && h("p.note", "Nothing of it lasted to the end of the episode, or no one looked then."));
  }

  function observed(episode, step, before) {
    const whole = Boolean(place.whole || !before);
    const shown = before ? compared(lines(episode, before), lines(episode, step), 0, whole) : lines(episode, step).join("\n");
    return [
      h("div.head", h("h3", "Observation"), before && link([whole ? "Show what changed " : "Show all of it ", key("o")], () => keys.o())),
      box("Observation", shown.length ? shown : "(empty)"), cut(step.obs_left_out),
    ];
  }

  const notesOf = (step) => (step.policy || step.note)
    && titled("What the policy noted", step.policy && facts(step.policy), step.note && text(step.note, "Note"));
  const gapsOf = (gaps) => gaps?.length > 0 && titled("Gaps: could not be shown or kept", h("p", gaps.map(plain).join(", ")));

  const stepOf = (episode, step, before) => [
    step.status && titled("Call", callOf(step, targetOf(episode, step, before))),
    step.result && titled("Result", text(step.result, "Result")),
    step.attempts && attemptsOf(step),
    step.changed && changedIn(episode, step),
    step.parts && titled("Parts of the reward", facts(step.parts)),
    gapsOf(step.gaps),
    step.picture && pictureOf(step),
    observed(episode, step, before),
    notesOf(step),
    step.times && titled("Times", facts(step.times)),
  ];

  // What is shown of the end

  const MEANING = { // of a check, where it has passed and where it has failed
    forbidden: ["no forbidden call was made", "a forbidden call was made"],
    no_forbidden_call: ["no forbidden call was made", "a forbidden call was made, which ended the episode"],
    goal: ["what was asked for is there at the end", "what was asked for is not there at the end"],
    answer: ["the answer is right", "the answer is wrong"],
    frame: ["nothing else was changed", "something else was changed"],
    acted: ["it was right to act", "it was not right to act: it should have declined"],
    untouched: ["nothing was changed", "something was changed before it declined"],
    reason: ["it declined for the right reason", "it declined for the wrong reason, or should not have declined"],
    look_first: ["what decides was read first", "what decides was not read first"],
    milestones: ["every step that is needed was taken", "a step that is needed was left out"],
    untampered: ["the tests were left alone", "the tests were tampered with"],
    code: ["the code does what it should", "the code does not do what it should"],
  };
  const meaning = ({ name, passed }) => (MEANING[/^(in|out_of)_process_/.test(name) ? "code" : name] ?? [])[passed ? 0 : 1];

  const checkOf = (check) => h("li",
    h(`span.mark.${check.passed ? "good" : "bad"}`, { "aria-hidden": "true" }, check.passed ? "✓" : "✗"),
    h("div", h("b", plain(check.name)), h("span.unseen", check.passed ? " passed" : " failed"),
      meaning(check) && h("span.note", ` ${meaning(check)}`),
      textOf(check.detail) && text(check.detail, `Detail of ${plain(check.name)}`)));

  function verdictOf({ checks, error, row }) {
    const sorted = [...checks.filter((check) => !check.passed), ...checks.filter((check) => check.passed)];
    const none = row.outcome === "truncated" ? "None was made: the episode was cut short before it was judged." : "None was recorded.";
    return [
      h("p.head.verdict", badge(row.outcome), row.end && row.end !== row.outcome && h("span", `ended by ${plain(row.end)}`),
        h("span.note", `reward ${row.reward_said} · ${count(row.steps, "step")}`)),
      error && h("p.aside", row.outcome === "infra_error" ? "The environment failed, not the agent: " : "", error),
      titled("Checks", sorted.length ? h("ul.checks", sorted.map(checkOf)) : h("p.note", none)),
    ];
  }

  function changesOf(episode) {
    function told(change) {
      const { steps, sure, fitting } = origins(episode).get(change);
      if (!steps.length) return false;
      const to = (step) => link(`step ${step.step}`, () => open(episode.row.id, step.step));
      const links = steps.slice(0, 6).map((step, number) => [number ? ", " : "", to(step)]);
      return h("span.note", sure ? "made in " : fitting ? "by its ids, made in " : "made in one of ", links, steps.length > 6 && " …");
    }
    return titled("What the episode changed", episode.changes.map((change) => changeOf(change, told(change))),
      !episode.changes.length && h("p.note", "Nothing."),
      episode.changes_left_out > 0 && h("p.note", `${count(episode.changes_left_out, "more change")} left out here; the store has them.`));
  }

  const eventOf = (event) => {
    const said = [event.at, plain(event.kind), event.author, event.step !== null && `step ${event.step}`, event.reason];
    return [h("p", said.filter(Boolean).join(" · ")), event.payload && text(event.payload, "Event")];
  };

  const endOf = (episode) => [
    verdictOf(episode),
    changesOf(episode),
    episode.milestones.length > 0 && titled("Milestones", facts(episode.milestones.map(({ name, step }) => [name, `step ${step}`]))),
    episode.parts.length > 0 && titled("Parts of the reward, summed", facts(episode.parts)),
    gapsOf(episode.gaps),
    episode.events.length > 0 && titled("Afterwards", episode.events.map(eventOf)),
    titled("About this episode", facts(episode.facts)),
  ];

  // The views. Each returns its keys, and sets drawPlace to what draws the step that was picked

  let keys = {};
  let drawPlace = () => {};
  const search = (label, value, typed) => h("input", { type: "search", "aria-label": label, placeholder: label, value, input: typed });

  const COLUMNS = [
    ["task", "Task", "task"], ["policy", "Policy", "policy"], ["outcome", "Outcome", "outcome"], ["failed", "Failed checks", "failed"],
    ["steps", "Steps", "number"], ["failures", "Failed calls", "number"], ["invalid", "Invalid actions", "number"],
    ["reward", "Reward", "number"], ["started", "Started (UTC)", "started"],
  ];
  const FILTERS = ["outcome", "family", "policy", "run"];
  const PAGE = 100;
  const chosen = new Set();

  function sorted(rows, by) {
    const column = by.replace(/^-/, "");
    const sign = by.startsWith("-") ? -1 : 1;
    if (!COLUMNS.some(([name]) => name === column)) return rows;
    const order = (one, two) => (one < two ? -sign : one > two ? sign : 0);
    const unknown = (row) => row[column] === null || row[column] === "";
    return [...rows].sort((one, two) => unknown(one) - unknown(two) || order(one[column], two[column]));
  }

  function showList() {
    document.title = byId("title").textContent = "Episodes";
    byId("nav").replaceChildren();
    const words = ["id", "task", "family", "goal", "policy", "outcome", "end", "failed", "run"];
    const said = new Map(index.episodes.map((row) => [row, words.map((name) => row[name]).join(" ").toLowerCase()]));
    let [rows, size, current] = [[], PAGE, 0];

    function fits(row, except) {
      return FILTERS.every((name) => name === except || !place[name] || row[name] === place[name])
        && (place.q ?? "").toLowerCase().split(/\s+/).every((word) => said.get(row).includes(word));
    }
    function change(changes) {
      keep(changes);
      [size, current] = [PAGE, 0];
      update();
    }

    const query = search("Task, goal, policy, failed check, id", place.q, () => change({ q: query.value }));
    const selects = FILTERS.map((name) => h("select", { change: (event) => change({ [name]: event.target.value }) }));
    const sorts = h("select", { change: () => change({ sort: sorts.value }) });
    const tally = h("span", { role: "status" });
    const clear = button("Clear filters", () => {
      query.value = "";
      change(Object.fromEntries([...FILTERS, "q"].map((name) => [name, ""])));
    });
    const both = button("", () => compare(...chosen));
    const heads = COLUMNS.map(([name, title, kind]) => h(`th.${kind}`, { scope: "col" },
      button(title, () => change({ sort: place.sort === name ? `-${name}` : name }))));
    const body = h("tbody");
    const table = h("table", h("thead", h("tr", h("th.pick", { scope: "col" }, h("span.unseen", "Compare")), heads)), body);
    const holder = h("div.list");
    const more = button("", () => { size += PAGE; update(); });

    function pickRow(row) {
      if (!chosen.delete(row.id)) chosen.add(row.id);
      if (chosen.size > 2) chosen.delete([...chosen][1]);
      update();
      focus(rows.indexOf(row));
    }
    function drawRow(row, number) {
      const pick = { type: "checkbox", tabindex: "-1", checked: chosen.has(row.id), "aria-label": `Compare ${row.task}, ${row.policy}` };
      const name = (row.task || row.id).split(/(?<=\/)/).flatMap((part) => [part, h("wbr")]);
      return h("tr", {
        tabindex: number === current ? "0" : "-1", "aria-label": `${row.task}, ${row.policy}, ${plain(row.outcome)}`,
        focus: () => { current = number; load(row.id); }, click: () => open(row.id),
      },
      h("td.pick", h("input", { ...pick, click: (event) => { event.stopPropagation(); pickRow(row); } })),
      h("td.task", h("b", name), h("span.gist", row.goal)),
      h("td.policy", row.policy),
      h("td.outcome", badge(row.outcome), row.end && row.end !== row.outcome && h("span.small", plain(row.end))),
      h("td.failed", plain(row.failed)),
      [row.steps, row.failures, row.invalid, row.reward_said].map((figure) => h("td.number", figure)),
      h("td.started", row.started));
    }
    function updateFilters() {
      for (const [number, name] of FILTERS.entries()) {
        const counts = new Map(place[name] ? [[place[name], 0]] : []);
        for (const row of index.episodes) if (fits(row, name)) counts.set(row[name], (counts.get(row[name]) ?? 0) + 1);
        const values = [...counts].sort(([one], [two]) => (one < two ? -1 : 1));
        selects[number].replaceChildren(h("option", { value: "" }, "all"),
          ...values.map(([value, n]) => h("option", { value, selected: value === place[name] }, `${plain(value) || "unknown"} (${n})`)));
      }
      const ways = COLUMNS.flatMap(([name, title]) => [[name, `${title}, ascending`], [`-${name}`, `${title}, descending`]]);
      const way = ([value, title]) => h("option", { value, selected: value === (place.sort ?? "") }, title);
      sorts.replaceChildren(...[["", "as recorded"], ...ways].map(way));
      for (const [number, [name, title]] of COLUMNS.entries()) {
        const order = { [name]: "ascending", [`-${name}`]: "descending" }[place.sort];
        if (order) heads[number].setAttribute("aria-sort", order);
        else heads[number].removeAttribute("aria-sort");
        heads[number].firstChild.textContent = title + ({ ascending: " ↑", descending: " ↓" }[order] ?? "");
      }
    }
    function update() {
      rows = sorted(index.episodes.filter((row) => fits(row)), place.sort ?? "");
      updateFilters();
      clear.hidden = !place.q && FILTERS.every((name) => !place[name]);
      tally.textContent = `${clear.hidden ? "" : `${rows.length} of `}${count(index.episodes.length, "episode")}`;
      both.disabled = chosen.size !== 2;
      both.textContent = chosen.size === 2 ? "Compare the two chosen" : `Choose two to compare (${chosen.size})`;
      body.replaceChildren(...rows.slice(0, size).map(drawRow));
      more.hidden = rows.length <= size;
      more.textContent = `Show ${Math.min(PAGE, rows.length - size)} more of ${rows.length}`;
      const none = index.episodes.length ? "No episode fits these filters."
        : "There are no episodes here. Record some with agent-gym eval, train or play, and write this page again.";
      holder.replaceChildren(rows.length ? table : h("p.empty", none));
    }
    function focus(to) {
      if (!rows.length) return;
      current = Math.min(rows.length - 1, Math.max(0, to));
      while (size <= current) size += PAGE;
      if (body.children.length < Math.min(size, rows.length)) update();
      body.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
      body.children[current].setAttribute("tabindex", "0");
      body.children[current].focus();
    }
    function labelled(title, field, kind) {
      field.id = `filter-${title}`;
      return h(`div.${kind}`, h("label", { for: field.id }, title), field);
    }

    show(
      h("div.filters", { role: "search" }, labelled("Search", query, "search"),
        FILTERS.map((name, number) => labelled(upper(name), selects[number], "filter")), labelled("Sort", sorts, "sort")),
      h("div.tally", tally, clear, both), holder, more);
    query.removeAttribute("aria-label");
    update();
    const back = rows.findIndex((row) => row.id === place.a);
    if (back >= 0) focus(back);
    const held = () => body.contains(document.activeElement);
    const move = (by) => () => focus(held() ? current + by : current);
    return {
      j: move(1), k: move(-1), ArrowDown: move(1), ArrowUp: move(-1), Home: () => focus(0), End: () => focus(rows.length - 1),
      Enter: () => held() && open(rows[current].id), x: () => held() && pickRow(rows[current]),
      c: () => chosen.size === 2 && compare(...chosen), "/": () => query.select(), leave: () => focus(current),
    };
  }

  function frame(title, goal, ...nav) {
    document.title = `${title} – Episodes`;
    byId("title").textContent = title;
    byId("nav").replaceChildren(button("← All episodes", list), ...nav.filter(Boolean));
    return h("p.goal", { tabindex: "0", role: "region", "aria-label": "Goal" }, goal || "(no goal was recorded)");
  }

  function showEpisode(episode) {
    const { row, steps } = episode;
    const end = steps.length;
    const rivals = index.episodes.filter((other) => other.id !== row.id && other.task === row.task);
    const rival = h("select", { "aria-label": "Compare with another episode of this task", change: () => compare(row.id, rival.value) },
      h("option", "Compare with…"),
      rivals.map((other) => h("option", { value: other.id }, `${other.policy}, ${plain(other.outcome)}, ${other.started}`)));
    const goal = frame(row.task || row.id, episode.goal, rivals.length > 0 && rival);
    let at = place.at === "end" ? end : steps.findIndex((step) => String(step.step) === place.at);
    if (at < 0) at = row.outcome === "success" ? 0 : end;

    const find = search("Search the steps", place.find, () => { keep({ find: find.value }); narrowed(); });
    const found = h("span.note", { role: "status" });
    const detail = h("section.detail", { "aria-label": "Step" });
    const entry = (number, ...content) => h("div.entry", h("span.index", number), content);
    const bar = track({ "aria-label": "Steps" }, 2.125, (item) => {
      const step = steps[item];
      if (!step) return entry("end", h("code", row.end === row.outcome ? "" : plain(row.end)), badge(row.outcome));
      const name = step.call ?? "";
      const target = targetOf(episode, step, steps[item - 1]);
      const said = called(step).slice(name.length, 200);
      return entry(step.step, h("code", h("b", name), target ? ` ${target} ${said}` : said), h("span.signs", signs(step)));
    }, (item) => pick(item));

    function narrowed() { // to the steps that say what is searched for: in the call, in what came of it, or in what is newly seen
      const wanted = (place.find ?? "").toLowerCase();
      const hits = new Set(episode.lines.flatMap((line, number) => (line.toLowerCase().includes(wanted) ? [number] : [])));
      const has = (passage) => textOf(passage).toLowerCase().includes(wanted);
      const says = (step, before) => [called(step), step.status, step.reason, step.result, step.note].some(has)
        || (step.attempts ?? []).some((attempt) => [attempt.status, attempt.fault, attempt.result].some(has))
        || (step.obs ?? []).some((line) => hits.has(line) && !before?.obs?.includes(line));
      const items = [...steps.keys(), end].filter((item) => !wanted || (item < end && says(steps[item], steps[item - 1])));
      found.textContent = wanted ? count(items.length, "step") : "";
      bar.set(items);
    }
    function pick(to) {
      if (to < 0) return;
      at = to;
      keep({ at: at === end ? "end" : String(steps[at].step) });
      drawPlace();
      scrollBy(0, Math.min(0, detail.getBoundingClientRect().top));
      const step = steps[at];
      say(step ? `Step ${step.step}: ${called(step).slice(0, 120)} ${plain(step.status ?? "")}` : `The end: ${plain(row.outcome)}`);
    }
    drawPlace = () => {
      bar.pick(at);
      const step = steps[at];
      detail.replaceChildren(
        h("div.place", h("h2", step ? `Step ${step.step}` : "The end"), step && marks(step), turning()),
        ...h("div", step ? stepOf(episode, step, steps[at - 1]) : endOf(episode)).childNodes);
    };

    const first = (what) => steps.findIndex((step) => step[what]);
    const jumps = { f: ["First failure", first("failed")], i: ["First invalid action", first("invalid")], e: ["The end", end] };
    const jump = ([name, [label, to]]) => button([label, " ", key(name)], () => pick(to), { disabled: to < 0 });
    show(goal,
      h("div.summary", badge(row.outcome), row.failed && h("span", "failed checks: ", h("b.bad", plain(row.failed))),
        [row.policy, row.env, `reward ${row.reward_said}`, `${row.started} UTC`].map((fact) => h("span", fact)), h("code", row.id)),
      h("div.jumps", Object.entries(jumps).map(jump), find, found),
      h("div.desk", bar.outer, detail));
    narrowed();
    drawPlace();
    bar.outer.focus({ preventScroll: true });
    return {
      ...walking(bar, end, () => at, pick, (to) => steps[to]?.failed), f: () => pick(jumps.f[1]), i: () => pick(jumps.i[1]),
      "/": () => find.select(), leave: () => bar.outer.focus(),
    };
  }

  const DIFFERENCES = { "≠": "another call", "≈": "the same call, another observation", "": "the same" };

  function showCompare(left, right) {
    const sides = [left, right];
    const same = left.row.task === right.row.task;
    const goal = frame(same ? `${left.row.task}: two episodes` : `${left.row.task} and ${right.row.task}`,
      same ? left.goal : `${left.goal}\n${right.goal}`, button("Swap sides", () => compare(right.row.id, left.row.id)));
    const end = Math.max(...sides.map((side) => (side.steps.at(-1)?.step ?? -1) + 1));
    const steps = Array.from({ length: end }, () => [undefined, undefined]);
    for (const [number, side] of sides.entries()) for (const step of side.steps) steps[step.step][number] = step;
    const alike = (one, two) => one.length === two.length && one.every((line, number) => line === two[number]);
    const differs = steps.map(([one, two]) => {
      if (!one || !two || called(one) !== called(two)) return "≠";
      return one.status === two.status && alike(lines(left, one), lines(right, two)) ? "" : "≈";
    });
    let at = place.at === "end" ? end : Number(place.at || Math.max(0, differs.findIndex(Boolean)));
    if (!(at >= 0 && at <= end)) at = 0;

    const detail = h("section.detail", { "aria-label": "Step, side by side" });
    const cell = (step) => h("span", step ? [h("code", called(step).slice(0, 200)), h("span.signs", signs(step))] : h("span.note", "–"));
    const bar = track({ "aria-label": "Steps of both", class: "track pair" }, narrow.matches ? 3.5 : 2.125, (item) => {
      const sign = item === end ? (left.row.outcome === right.row.outcome ? "" : "≠") : differs[item];
      return h("div.entry", h("span.index", item === end ? "end" : item), h("span.sign", { title: DIFFERENCES[sign] }, sign),
        item === end ? sides.map((side) => h("span", badge(side.row.outcome))) : steps[item].map(cell));
    }, (item) => pick(item));

    function pick(to) {
      at = to;
      keep({ at: at === end ? "end" : String(at) });
      drawPlace();
      say(at === end ? "The end" : `Step ${at}: ${DIFFERENCES[differs[at]]}`);
    }
    function half(number) {
      const step = steps[at][number];
      if (!step) return h("p.empty", "This episode has no such step.");
      const side = number === 0 ? -1 : 1;
      const there = steps[at][1 - number] ? [0, 1] : [number, number]; // where the other side has no such step nothing is marked
      const seen = there.map((one) => lines(sides[one], steps[at][one]));
      return [
        h("p.head", marks(step)),
        titled("Call", h("code.call", marked(...there.map((one) => called(steps[at][one])), side)), step.reason && h("p.bad", step.reason)),
        retried(step) && attemptsOf(step),
        step.picture && pictureOf(step),
        titled("Observation", box("Observation", compared(...seen, side, place.whole || !differs[at])), cut(step.obs_left_out)),
        notesOf(step),
      ];
    }
    drawPlace = () => {
      bar.pick(at);
      const sign = differs[at];
      detail.replaceChildren(
        h("div.place", h("h2", at === end ? "The end" : `Step ${at}`),
          at < end && h(`span.${sign ? "care" : "note"}`, `${sign} ${DIFFERENCES[sign]}`),
          button(["Next difference ", key("n")], () => keys.n()), turning()),
        h("div.sides", sides.map((side, number) => h("section", { "aria-label": number ? "Right" : "Left" },
          h("h3", name(side)), at === end ? endOf(side) : half(number)))));
    };
    const name = ({ row }) => [
      link(`${row.policy}, ${plain(row.outcome)}`, () => open(row.id, at === end ? "end" : at)), same ? "" : ` · ${row.task}`,
    ];
    const total = (sign) => differs.filter((one) => one === sign).length;
    show(goal,
      h("p.summary", `${count(end, "step")} with the reset: in ${total("≠")} ${DIFFERENCES["≠"]}, in ${total("≈")} ${DIFFERENCES["≈"]}.`),
      bar.outer, detail);
    bar.set([...steps.keys(), end]);
    drawPlace();
    bar.outer.focus({ preventScroll: true });
    return walking(bar, end, () => at, pick, (to) => to === end || differs[to]);
  }

  // Drawing, theme, keys

  let turn = 0;

  async function draw() {
    const mine = ++turn;
    document.documentElement.dataset.ready = "";
    theme();
    const wanted = { episode: [place.a], compare: [place.a, place.b] }[place.view] ?? [];
    const episodes = await Promise.all(wanted.filter((id) => known.has(id)).map(load));
    if (mine !== turn) return;
    if (episodes.length < wanted.length || !wanted.length) keys = showList();
    else keys = wanted.length === 1 ? showEpisode(...episodes) : showCompare(...episodes);
    if (wanted.length) scrollTo(0, 0);
    document.documentElement.dataset.ready = place.view || "list";
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
  const schemes = rules.filter((rule) => rule.media?.mediaText.includes("prefers-color-scheme"));

  function theme() { // the rules for dark are those of the style sheet, switched here instead of by the system
    const wanted = ["dark", "light"].includes(place.theme) ? place.theme : dark.matches ? "dark" : "light";
    const other = wanted === "dark" ? "light" : "dark";
    for (const rule of schemes) rule.media.mediaText = wanted === "dark" ? "all" : "not all";
    document.documentElement.style.colorScheme = wanted;
    byId("theme").textContent = upper(other);
    byId("theme").setAttribute("aria-label", `Switch to ${other}`);
    return other;
  }

  byId("theme").addEventListener("click", () => { keep({ theme: theme() }); theme(); });
  dark.addEventListener("change", theme);
  narrow.addEventListener("change", draw);
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  addEventListener("pagehide", () => { if (settling) settle(); });
  addEventListener("popstate", () => {
    clearTimeout(settling);
    settling = 0;
    place = parse();
    draw();
  });

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const target = event.target;
    if (target.matches("input:not([type=checkbox]), select")) {
      if (target.type === "search" && ["Escape", "Enter"].includes(event.key)) { event.preventDefault(); keys.leave(); }
    } else if (event.key === "Enter" && target.matches("button, summary")) {
      return;
    } else if (["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key) && target.matches(".text, .goal")) {
      return;
    } else if (event.key === "?") {
      byId("help").showModal();
    } else if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });

  place = parse();
  if (!location.hash && index.opened.length) {
    const [a, b] = index.opened;
    place = { view: b ? "compare" : "episode", a, b };
    settle();
  }
  draw();
})();
