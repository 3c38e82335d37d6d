"use strict";
// The viewer: a list of episodes, one of them step by step, two side by side. Everything recorded is shown as text, never as markup,
// and only what can be seen is drawn, so that thousands of steps stay quick. Where one is stands in the address after "#".
(() => {
  const byId = (id) => document.getElementById(id);
  const index = JSON.parse(byId("index").textContent);
  const known = new Map(index.episodes.map((row, number) => [row.id, { ...row, number }]));
  const narrow = matchMedia("(max-width: 45rem)");
  const app = byId("app");

  // Elements

  function h(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (typeof value === "function") element.addEventListener(name, value);
      else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false && child !== ""));
    return element;
  }

  const button = (label, click, attributes) => h("button", { type: "button", click, ...attributes }, label);
  const plain = (word) => word.replaceAll("_", " ");
  const badge = (word, tone) => h("span", { class: `badge ${tone ?? index.tones[word] ?? "care"}` }, plain(word));
  const say = (text) => { byId("said").textContent = text; };
  const count = (number, one) => `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;
  const [textOf, leftOut] = [(passage) => (Array.isArray(passage) ? passage[0] : passage ?? ""), (passage) => (Array.isArray(passage) ? passage[1] : 0)];
  const cut = (number) => number > 0 && h("p", { class: "note" }, `${count(number, "more character")} left out here; the trajectory store has them.`);
  const text = (passage, label) => [h("div", { class: "text", tabindex: "0", role: "region", "aria-label": label }, textOf(passage)), cut(leftOut(passage))];
  const titled = (title, ...content) => [h("h3", {}, title), ...content];
  const facts = (pairs) => h("dl", { class: "facts-list" }, pairs.map(([name, value]) => [h("dt", {}, plain(name)), h("dd", {}, value)]));

  // Differences: Myers' greedy algorithm (An O(ND) difference algorithm, 1986) over lines and over words

  const MOST_EDITS = 400;

  function edits(a, b) { // [[sign, item], …]: 0 in both, -1 only in a, 1 only in b
    let head = 0;
    while (head < a.length && head < b.length && a[head] === b[head]) head++;
    let tail = 0;
    while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
    const sign = (mark) => (item) => [mark, item];
    const [left, right] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
    return [...a.slice(0, head).map(sign(0)), ...(shortest(left, right) ?? [...left.map(sign(-1)), ...right.map(sign(1))]), ...a.slice(a.length - tail).map(sign(0))];
  }

  function shortest(a, b) {
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
        if (x >= a.length && x - k >= b.length) return walk(d);
      }
    }
    return null;

    function walk(last) {
      const found = [];
      let [x, y] = [a.length, b.length];
      for (let d = last; d > 0; d--) {
        const k = x - y;
        const inserted = down(k, d, before[d]);
        const fromX = before[d][most + k + (inserted ? 1 : -1)];
        const fromY = fromX - (k + (inserted ? 1 : -1));
        while (x > fromX && y > fromY) { x--; y--; found.push([0, a[x]]); }
        found.push(inserted ? [1, b[--y]] : [-1, a[--x]]);
      }
      while (x > 0) found.push([0, a[--x]]);
      return found.reverse();
    }
  }

  function blocks(a, b) { // runs of lines: {same} or {gone, new}
    const found = [];
    for (const [sign, line] of edits(a, b)) {
      let block = found.at(-1);
      if (!block || (sign === 0) !== ("same" in block)) found.push(block = sign === 0 ? { same: [] } : { gone: [], new: [] });
      block[sign === 0 ? "same" : sign < 0 ? "gone" : "new"].push(line);
    }
    return found;
  }

  const tokens = (string) => string.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];

  function marked(before, after, side) { // side: -1 what was or is left, 1 right, 0 both in one text
    let found = edits(tokens(before), tokens(after));
    const shared = found.reduce((sum, [sign, token]) => sum + (sign === 0 && token.trim() ? token.length : 0), 0);
    if (shared < 0.25 * Math.min(before.length, after.length)) found = [[-1, before], [1, after]];
    const runs = [];
    for (const [sign, token] of found) {
      if (side !== 0 && sign === -side) continue;
      if (runs.at(-1)?.sign === sign) runs.at(-1).token += token;
      else runs.push({ sign, token });
    }
    return runs.filter(({ token }) => token).map(({ sign, token }) => (sign === 0 ? token : h(sign < 0 ? "del" : "ins", {}, token)));
  }

  function compared(before, after, side, whole) { // lines of text with what differs marked, and what does not folded
    return blocks(before, after).map((block) => {
      if (!("same" in block)) {
        const [gone, fresh] = [block.gone, block.new].map((lines) => lines.map((line) => `${line}\n`).join(""));
        return marked(gone, fresh, side);
      }
      const said = block.same.map((line) => `${line}\n`).join("");
      if (whole || (block.same.length < 3 && said.length < 300)) return said;
      const fold = button(`⋯ ${count(block.same.length, "line")} ${side === 0 ? "as before" : "the same"}`, () => fold.replaceWith(said), { class: "plain fold" });
      return fold;
    });
  }

  // Where one is: the address after "#"

  const PLACE = ["view", "a", "b", "at", "q", "outcome", "family", "policy", "run", "sort", "find", "whole", "theme"];
  let place = {};
  let keeping = 0;

  const parse = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    return Object.fromEntries(PLACE.filter((name) => given.get(name)).map((name) => [name, given.get(name)]));
  };
  const address = () => `#${new URLSearchParams(Object.entries(place).filter(([name, value]) => PLACE.includes(name) && value))}`;
  const settle = () => { clearTimeout(keeping); keeping = 0; history.replaceState(null, "", address()); };
  function keep(changes) { // browsers allow only so many changes of the address a second
    place = { ...place, ...changes };
    if (!keeping) keeping = setTimeout(settle, 200);
  }
  function go(changes) {
    if (keeping) settle();
    place = { ...place, ...changes };
    history.pushState(null, "", address());
    draw();
  }
  const list = () => go({ view: "", b: "", at: "", find: "" });
  const open = (id, at) => go({ view: "episode", a: id, b: "", at: at ?? "", find: "" });
  const compare = (a, b) => go({ view: "compare", a, b, at: "", find: "" });

  // Episodes are unpacked when they are needed

  const loaded = new Map();

  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const episode = JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
    for (const [number, step] of episode.steps.entries()) {
      const before = new Set(episode.steps[number - 1]?.obs);
      step.fresh = (step.obs ?? []).filter((line) => !before.has(line));
    }
    return episode;
  }

  async function load(id) {
    const row = known.get(id);
    if (!loaded.has(id)) loaded.set(id, unpack(byId(`episode-${row.number}`).textContent).then((episode) => ({ ...episode, row })));
    return loaded.get(id);
  }

  const lines = (episode, step) => (step?.obs ?? []).map((line) => episode.lines[line]);
  const called = (step) => step.call
    ? `${step.call}(${step.inline ?? (step.arguments ?? []).map(([name, value]) => `${name}=${JSON.stringify(textOf(value))}`).join(", ")})`
    : step.step === 0 || !("status" in step) ? "reset" : `could not be read: ${textOf(step.given) || "(nothing)"}`;
  const retried = (step) => (step.attempts ?? []).length > 1 || (step.attempts ?? []).some((attempt) => attempt.fault);

  // A scrolling box of many rows, of which only those in sight exist

  function track(attributes, height, drawRow, choose) {
    const inner = h("div", {});
    const box = h("div", { class: "track", role: "listbox", tabindex: "0", ...attributes }, inner);
    let [items, picked] = [[], -1];
    const px = height * parseFloat(getComputedStyle(document.documentElement).fontSize);
    function show() {
      const first = Math.max(0, Math.floor(box.scrollTop / px) - 5);
      const shown = items.slice(first, first + Math.ceil((box.clientHeight || 800) / px) + 10);
      inner.replaceChildren(...shown.map((item, offset) => {
        const row = drawRow(item);
        row.id = `entry-${item}`;
        row.style.top = `${(first + offset) * px}px`;
        row.style.height = `${px}px`;
        for (const [name, value] of [["role", "option"], ["aria-selected", item === picked], ["aria-posinset", first + offset + 1], ["aria-setsize", items.length]]) row.setAttribute(name, value);
        row.addEventListener("click", () => choose(item));
        return row;
      }));
    }
    box.addEventListener("scroll", show);
    new ResizeObserver(show).observe(box);
    return {
      box,
      set(chosen) { items = chosen; inner.style.height = `${items.length * px}px`; show(); },
      pick(item) {
        picked = item;
        const top = items.indexOf(item) * px;
        if (top < box.scrollTop + px) box.scrollTop = top - px;
        else if (top + 2 * px > box.scrollTop + box.clientHeight) box.scrollTop = top + 2 * px - box.clientHeight;
        box.setAttribute("aria-activedescendant", `entry-${item}`);
        show();
      },
    };
  }

  function walker(size, at, pick, failed) { // what the keys do where there are steps; failed says which n and p go to
    const next = (sign) => { for (let to = at() + sign; to >= 0 && to < size; to += sign) if (failed(to)) return pick(to); return say("No other."); };
    const move = (by) => () => pick(Math.min(size - 1, Math.max(0, at() + by)));
    return {
      j: move(1), k: move(-1), ArrowDown: move(1), ArrowUp: move(-1), Home: () => pick(0), End: () => pick(size - 1), e: () => pick(size - 1),
      n: () => next(1), p: () => next(-1), o: () => { keep({ whole: place.whole ? "" : "1" }); pick(at()); }, Escape: list,
    };
  }

  // What is shown of a step, and of the end

  const signs = (step) => [
    retried(step) && h("span", { title: "several attempts, or a fault in one" }, "↻"),
    step.changed && h("span", { title: "the state changed" }, "✎"),
    step.reached && h("span", { class: "good", title: `reached ${step.reached.map(plain).join(", ")}` }, "◆"),
    step.reward && h("span", { title: "reward" }, step.reward),
    step.status && step.tone !== "good" && badge(step.status, step.tone),
  ];

  const marksOf = (step) => step.status && h("span", { class: "marks" }, badge(step.status, step.tone), h("span", {}, `reward ${step.reward ?? "0"}`),
    step.changed && h("span", {}, "✎ state changed"), step.reached && h("span", { class: "good" }, `◆ reached ${step.reached.map(plain).join(", ")}`));

  const callOf = (step) => [
    h("code", { class: "call" }, step.call ? [h("b", {}, step.call), step.arguments ? "" : `(${step.inline ?? ""})`] : called(step)),
    step.arguments && h("dl", { class: "arguments" }, step.arguments.map(([name, value]) => [h("dt", {}, name), h("dd", {}, text(value, name))])),
    step.reason && h("p", { class: "bad" }, step.reason),
  ];

  const attemptsOf = (step) => h("ol", { class: "attempts" }, step.attempts.map((attempt) => h("li", {},
    h("div", { class: "head" },
      h("span", {}, `attempt ${attempt.attempt}`), badge(attempt.status, attempt.tone),
      attempt.tool && h("span", {}, "by ", h("code", {}, attempt.tool)),
      attempt.waited && h("span", {}, `after waiting ${attempt.waited}`),
      attempt.fault && h("span", { class: "care" }, `injected fault: ${plain(attempt.fault)}`),
      attempt.after && h("span", {}, `retry after ${attempt.after}`),
      attempt.effect && h("span", {}, attempt.effect === "read" ? "reads" : `${plain(attempt.effect)}, ${attempt.took_effect ? "took effect" : "took no effect"}`),
      attempt.from_cache && h("span", {}, "from the cache"),
      attempt.key && h("span", {}, "key ", h("code", {}, attempt.key)),
      h("span", {}, attempt.took)),
    attempt.result && text(attempt.result, "Result of this attempt"), attempt.error && text(attempt.error, "Error"))));

  function pictureOf(step) {
    const packed = byId(`picture-${step.picture}`);
    if (!step.picture) return null;
    if (!packed) return h("p", { class: "note" }, "There is a picture of this step in the trajectory store; it is left out of this file, which would be too large.");
    return h("img", { class: "picture", src: `data:image/png;base64,${packed.textContent}`, alt: `The page after step ${step.step}` });
  }

  function observed(episode, step, before) {
    const whole = place.whole || !before;
    const switches = h("span", { class: "head" }, h("h3", {}, "Observation"), before && button(whole ? "Show what changed" : "Show all of it", () => {
      keep({ whole: place.whole ? "" : "1" });
      drawPlace();
    }, { class: "plain" }));
    const shown = before ? compared(lines(episode, before), lines(episode, step), 0, whole) : lines(episode, step).join("\n");
    return [switches, h("div", { class: "text whole", tabindex: "0", role: "region", "aria-label": "Observation" }, shown.length ? shown : "(empty)"), cut(step.obs_left_out)];
  }

  const stepOf = (episode, step, before) => [
    step.status && titled("Call", callOf(step)),
    step.result && titled("Result", text(step.result, "Result")),
    step.attempts && titled(count(step.attempts.length, "attempt"), attemptsOf(step)),
    step.parts && titled("Parts of the reward", facts(step.parts)),
    step.gaps && titled("Gaps: could not be shown or kept", h("p", {}, step.gaps.map(plain).join(", "))),
    step.picture && titled("Page", pictureOf(step)),
    observed(episode, step, before),
    (step.policy || step.note) && titled("What the policy noted", step.policy && facts(step.policy), step.note && text(step.note, "Note")),
    step.times && titled("Times", facts(step.times)),
  ];

  const MEANING = {
    forbidden: "no forbidden call was made", no_forbidden_call: "no forbidden call was made", goal: "what was asked for is there at the end",
    frame: "nothing else was changed", acted: "acting was right, rather than declining", look_first: "the records that decide were read first",
    untouched: "nothing was changed", reason: "it was closed for the right reason", answer: "the answer is right", milestones: "every step that is needed was taken",
    step_limit: "it ended within its steps", deadline: "it ended in time", budget: "it ended within its budget", untampered: "the tests were left alone",
  };

  function verdictOf(episode) {
    const failed = episode.checks.filter((check) => !check.passed);
    return [
      h("p", { class: "head" }, badge(episode.row.outcome), episode.row.end && episode.row.end !== episode.row.outcome && h("span", {}, `ended by ${plain(episode.row.end)}`),
        h("span", { class: "note" }, `reward ${episode.row.reward_said} · ${count(episode.row.steps, "step")}`)),
      episode.error && h("p", { class: "aside" }, "The environment failed, not the agent: ", episode.error),
      titled("Checks", episode.checks.length ? h("ul", { class: "checks" }, [...failed, ...episode.checks.filter((check) => check.passed)].map((check) => h("li", {},
        h("span", { class: `mark ${check.passed ? "good" : "bad"}`, title: check.passed ? "passed" : "failed" }, check.passed ? "✓" : "✗"),
        h("div", {}, h("b", {}, plain(check.name)), h("span", { class: "unseen" }, check.passed ? " passed" : " failed"),
          MEANING[check.name] && h("span", { class: "note" }, ` ${check.passed ? "" : "it is not so that "}${MEANING[check.name]}`),
          textOf(check.detail) && text(check.detail, `Detail of ${check.name}`)))))
        : h("p", { class: "note" }, episode.row.outcome === "truncated" ? "None was made: the episode was cut short before it was judged." : "None was recorded.")),
    ];
  }

  function changesOf(episode) {
    if (!episode.changes.length) return titled("What the episode changed", h("p", { class: "note" }, "Nothing."));
    const writes = episode.steps.filter((step) => step.changed);
    return [titled("What the episode changed", episode.changes.map((change) => {
      const named = writes.filter((step) => [called(step), textOf(step.result)].some((said) => said.includes(change.key)));
      const rest = change.fields.filter((field) => field.same);
      const shown = ({ name, before, after, same }) => [h("dt", {}, name || "value"), h("dd", {}, same || change.kind === "added" ? textOf(after)
        : change.kind === "removed" ? h("del", {}, textOf(before)) : [h("del", {}, textOf(before)), " → ", h("ins", {}, textOf(after))])];
      return h("div", { class: "change" },
        h("div", { class: "head" }, h("span", { class: `badge ${change.kind === "added" ? "good" : change.kind === "removed" ? "bad" : "care"}` }, change.kind), h("b", {}, change.where), h("code", {}, change.key),
          named.length > 0 && h("span", { class: "note" }, "named where the state changed: ", named.slice(0, 5).map((step, number) => [number ? ", " : "", button(`step ${step.step}`, () => open(episode.row.id, step.step), { class: "plain" })]))),
        h("dl", {}, change.fields.filter((field) => !field.same).map(shown)),
        rest.length > 0 && h("details", { class: "same" }, h("summary", {}, `${count(rest.length, "field")} as before`), h("dl", {}, rest.map(shown))));
    })), episode.changes_left_out > 0 && h("p", { class: "note" }, `${count(episode.changes_left_out, "more change")} left out here; the trajectory store has them.`)];
  }

  const endOf = (episode) => [
    verdictOf(episode), changesOf(episode),
    episode.milestones.length > 0 && titled("Milestones", facts(episode.milestones.map(({ name, step }) => [name, `step ${step}`]))),
    episode.parts.length > 0 && titled("Parts of the reward, summed", facts(episode.parts)),
    episode.gaps.length > 0 && titled("Gaps: could not be shown or kept", h("p", {}, episode.gaps.map(plain).join(", "))),
    episode.events.length > 0 && titled("Afterwards", episode.events.map((event) => [h("p", {}, [event.at, plain(event.kind), event.author, event.step !== null && `step ${event.step}`, event.reason].filter(Boolean).join(" · ")), event.payload && text(event.payload, "Event")])),
    titled("About this episode", facts(episode.facts)),
  ];

  // The three views. Each returns its keys; drawPlace draws what depends on the place alone

  let keys = {};
  let drawPlace = () => {};

  const COLUMNS = [
    ["task", "Task", "task"], ["policy", "Policy", "policy"], ["outcome", "Outcome", "outcome"], ["failed", "Failed checks", "failed"], ["steps", "Steps", "number count"],
    ["failures", "Failed calls", "number count"], ["invalid", "Invalid actions", "number count"], ["reward", "Reward", "number count"], ["started", "Started (UTC)", "started"],
  ];
  const FILTERS = ["outcome", "family", "policy", "run"];
  const PAGE = 100;
  const chosen = new Set();

  function showList() {
    document.title = index.title;
    byId("title").textContent = index.title;
    const texts = new Map(index.episodes.map((row) => [row, [row.id, row.task, row.family, row.goal, row.policy, row.outcome, row.end, row.failed, row.run].join(" ").toLowerCase()]));
    const fits = (row, except) => FILTERS.every((name) => name === except || !place[name] || row[name] === place[name])
      && (place.q ?? "").toLowerCase().split(/\s+/).every((word) => texts.get(row).includes(word));
    let [rows, size, current] = [[], PAGE, 0];

    const search = h("input", { type: "search", value: place.q, placeholder: "Task, goal, policy, failed check, id", input: () => { keep({ q: search.value }); refresh(true); } });
    const selects = FILTERS.map((name) => h("select", { change: (event) => { keep({ [name]: event.target.value }); refresh(true); } }));
    const sorts = h("select", { change: () => sortBy(sorts.value) });
    const tally = h("span", { role: "status" });
    const both = button("Compare the two", () => compare(...chosen));
    const clear = button("Clear filters", () => { keep(Object.fromEntries([...FILTERS, "q"].map((name) => [name, ""]))); search.value = ""; refresh(true); });
    const heads = COLUMNS.map(([name, title, kind]) => h("th", { scope: "col", class: kind }, button(title, () => sortBy(place.sort === name ? `-${name}` : name))));
    const body = h("tbody", {});
    const more = button("", () => { size += PAGE; refresh(); });
    const table = h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "pick" }, h("span", { class: "unseen" }, "Compare")), heads)), body);
    const holder = h("div", { class: "list" });

    function sortBy(column) { keep({ sort: column }); refresh(true); }
    function sorted(found) {
      const column = (place.sort ?? "").replace(/^-/, "");
      if (!COLUMNS.some(([name]) => name === column)) return found;
      const sign = place.sort.startsWith("-") ? -1 : 1;
      const rank = (one, two) => (one === null ? (two === null ? 0 : 1) : two === null ? -1 : sign * (typeof one === "number" ? one - two : one < two ? -1 : one > two ? 1 : 0));
      return [...found].sort((one, two) => rank(one[column], two[column]));
    }
    function choose(row) {
      if (chosen.has(row.id)) chosen.delete(row.id);
      else { if (chosen.size === 2) chosen.delete([...chosen][1]); chosen.add(row.id); }
      refresh();
      focus(rows.indexOf(row));
    }
    function rowOf(row, number) {
      return h("tr", { tabindex: number === current ? "0" : "-1", "data-id": row.id, "aria-label": `${row.task}, ${row.policy}, ${plain(row.outcome)}`, focus: () => { current = number; }, click: () => open(row.id) },
        h("td", { class: "pick" }, h("input", { type: "checkbox", tabindex: "-1", checked: chosen.has(row.id), "aria-label": `Compare ${row.task}, ${row.policy}`, click: (event) => { event.stopPropagation(); choose(row); } })),
        h("td", { class: "task" }, h("b", {}, (row.task || row.id).split(/(?<=\/)/).flatMap((part) => [part, h("wbr")])), h("span", { class: "gist" }, row.goal)),
        h("td", { class: "policy" }, row.policy), h("td", { class: "outcome" }, badge(row.outcome), row.end && row.end !== row.outcome && h("span", { class: "small" }, plain(row.end))),
        h("td", { class: "failed" }, plain(row.failed)), ["steps", "failures", "invalid"].map((name) => h("td", { class: "number count" }, row[name])), h("td", { class: "number count" }, row.reward_said), h("td", { class: "started" }, row.started));
    }
    function refresh(fresh) {
      if (fresh) [size, current] = [PAGE, 0];
      rows = sorted(index.episodes.filter((row) => fits(row)));
      for (const [number, name] of FILTERS.entries()) {
        const counts = new Map();
        for (const row of index.episodes) if (fits(row, name)) counts.set(row[name], (counts.get(row[name]) ?? 0) + 1);
        if (place[name] && !counts.has(place[name])) counts.set(place[name], 0);
        const options = [...counts].sort(([one], [two]) => (one < two ? -1 : 1)).map(([value, n]) => h("option", { value, selected: value === place[name] }, `${plain(value) || "unknown"} (${n})`));
        selects[number].replaceChildren(h("option", { value: "" }, "all"), ...options);
      }
      sorts.replaceChildren(h("option", { value: "" }, "time"), ...COLUMNS.flatMap(([name, title]) => [["", "ascending"], ["-", "descending"]].map(([sign, way]) => h("option", { value: sign + name, selected: place.sort === sign + name }, `${title}, ${way}`))));
      for (const [number, [name]] of COLUMNS.entries()) {
        const way = place.sort === name ? "ascending" : place.sort === `-${name}` ? "descending" : "";
        heads[number].toggleAttribute("aria-sort", Boolean(way));
        if (way) heads[number].setAttribute("aria-sort", way);
        heads[number].firstChild.textContent = COLUMNS[number][1] + (way ? (way === "ascending" ? " ↑" : " ↓") : "");
      }
      const filtered = place.q || FILTERS.some((name) => place[name]);
      tally.textContent = filtered ? `${rows.length} of ${count(index.episodes.length, "episode")}` : count(rows.length, "episode");
      clear.hidden = !filtered;
      both.disabled = chosen.size !== 2;
      both.textContent = chosen.size === 2 ? "Compare the two chosen" : `Choose two to compare (${chosen.size})`;
      body.replaceChildren(...rows.slice(0, size).map(rowOf));
      more.hidden = rows.length <= size;
      more.textContent = `Show ${Math.min(PAGE, rows.length - size)} more of ${rows.length}`;
      holder.replaceChildren(rows.length ? table : h("p", { class: "empty" }, index.episodes.length ? "No episode fits these filters." : "There are no episodes here: record some with agent-gym eval, train or play, and write this page again."));
    }
    function focus(to) {
      if (!rows.length) return;
      current = Math.min(rows.length - 1, Math.max(0, to));
      if (current >= size) size = current + PAGE;
      if (body.children.length !== Math.min(size, rows.length)) refresh();
      body.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
      body.children[current].setAttribute("tabindex", "0");
      body.children[current].focus();
    }

    function label(title, field, kind) {
      field.id = `filter-${title}`;
      return h("div", { class: kind }, h("label", { for: field.id }, title), field);
    }
    app.replaceChildren(
      h("div", { class: "filters", role: "search" }, label("Search", search, "search"), FILTERS.map((name, number) => label(name[0].toUpperCase() + name.slice(1), selects[number])), label("Sort", sorts, "sort")),
      h("div", { class: "tally" }, tally, clear, both), holder, more);
    byId("nav").replaceChildren();
    refresh();
    const back = rows.findIndex((row) => row.id === place.a);
    if (back >= 0) focus(back);
    const held = () => (body.contains(document.activeElement) ? 1 : 0);
    const move = (by) => () => focus(current + by * held());
    return {
      j: move(1), k: move(-1), ArrowDown: move(1), ArrowUp: move(-1), Home: () => focus(0), End: () => focus(rows.length - 1), Enter: () => held() && open(rows[current].id),
      x: () => held() && choose(rows[current]), c: () => chosen.size === 2 && compare(...chosen), "/": () => { search.focus(); search.select(); }, leave: () => focus(current),
    };
  }

  function frame(title, ...nav) {
    document.title = `${title} – ${index.title}`;
    byId("title").textContent = title;
    byId("nav").replaceChildren(...(index.episodes.length > nav.length ? [button("← All episodes", list)] : []), ...nav);
  }

  function showEpisode(episode) {
    const { row, steps } = episode;
    const end = steps.length;
    const rivals = index.episodes.filter((other) => other.id !== row.id && other.task === row.task);
    const rival = h("select", { "aria-label": "Compare with another episode of this task", change: () => rival.value && compare(row.id, rival.value) },
      h("option", { value: "" }, "Compare with…"), rivals.map((other) => h("option", { value: other.id }, `${other.policy}, ${plain(other.outcome)}, ${other.started}`)));
    frame(row.task || row.id, ...(rivals.length ? [rival] : []));
    let at = place.at === "end" ? end : steps.findIndex((step) => String(step.step) === place.at);
    if (at < 0) at = row.outcome === "success" ? 0 : end;

    const first = (what) => steps.findIndex((step) => step[what]);
    const [failure, invalid] = [first("failed"), first("invalid")];
    const jump = (label, to, key) => button([label, " ", h("kbd", {}, key)], () => pick(to), { disabled: to < 0 });
    const find = h("input", { type: "search", value: place.find, placeholder: "Search the steps", "aria-label": "Search the steps", input: () => { keep({ find: find.value }); narrowed(); } });
    const found = h("span", { class: "note", role: "status" });
    const detail = h("section", { class: "detail", "aria-label": "Step" });
    const bar = track({ "aria-label": "Steps" }, 2.125, (item) => {
      if (item === end) return h("div", { class: "entry" }, h("span", { class: "index" }, "end"), h("code", {}, row.end && row.end !== row.outcome ? plain(row.end) : ""), badge(row.outcome));
      const step = steps[item];
      return h("div", { class: "entry" }, h("span", { class: "index" }, step.step), h("code", {}, step.call ? [h("b", {}, step.call), called(step).slice(step.call.length, 200)] : called(step).slice(0, 200)), h("span", { class: "signs" }, signs(step)));
    }, (item) => pick(item));

    function narrowed() {
      const wanted = (place.find ?? "").toLowerCase();
      const all = [...Array(end + 1).keys()];
      if (!wanted) { found.textContent = ""; return bar.set(all); }
      const hit = new Set(episode.lines.flatMap((line, number) => (line.toLowerCase().includes(wanted) ? [number] : [])));
      const says = (step) => [called(step), step.status, step.reason, textOf(step.result), textOf(step.note), ...(step.attempts ?? []).flatMap((attempt) => [attempt.status, attempt.fault, textOf(attempt.result)])]
        .some((said) => said?.toLowerCase().includes(wanted)) || step.fresh.some((line) => hit.has(line));
      const hits = all.filter((item) => item < end && says(steps[item]));
      found.textContent = count(hits.length, "step");
      bar.set(hits);
    }
    function pick(to) {
      if (to < 0) return say("There is none.");
      at = to;
      keep({ at: at === end ? "end" : String(steps[at].step) });
      drawPlace();
      const top = detail.getBoundingClientRect().top;
      if (top < 0) scrollBy(0, top);
      say(at === end ? `The end: ${plain(row.outcome)}` : `Step ${steps[at].step}: ${called(steps[at]).slice(0, 120)} ${plain(steps[at].status ?? "")}`);
      return undefined;
    }
    drawPlace = () => {
      bar.pick(at);
      const step = steps[at];
      detail.replaceChildren(
        h("div", { class: "place" }, h("h2", {}, step ? `Step ${step.step}` : "The end"), step && marksOf(step),
          h("span", { class: "turn" }, button("← Previous", () => pick(at - 1), { disabled: at === 0 }), button("Next →", () => pick(at + 1), { disabled: at === end }))),
        ...h("div", {}, step ? stepOf(episode, step, steps[at - 1]) : endOf(episode)).childNodes);
    };
    app.replaceChildren(
      h("p", { class: "goal", tabindex: "0", role: "region", "aria-label": "Goal" }, episode.goal || "(no goal was recorded)"),
      h("div", { class: "summary" }, badge(row.outcome), row.failed && h("span", {}, "failed checks: ", h("b", { class: "bad" }, plain(row.failed))), h("span", {}, row.policy), h("span", {}, row.env),
        h("span", {}, `reward ${row.reward_said}`), h("span", {}, row.started, " UTC"), h("code", {}, row.id)),
      h("div", { class: "jumps" }, jump("First failure", failure, "f"), jump("First invalid action", invalid, "i"), jump("The end", end, "e"), find, found),
      h("div", { class: "desk" }, bar.box, detail));
    narrowed();
    drawPlace();
    bar.box.focus({ preventScroll: true });
    return {
      ...walker(end + 1, () => at, pick, (to) => steps[to]?.failed), f: () => pick(failure), i: () => pick(invalid),
      "/": () => { find.focus(); find.select(); }, leave: () => bar.box.focus(), Enter: () => {},
    };
  }

  function showCompare(left, right) {
    const sides = [left, right];
    const end = Math.max(left.steps.length, right.steps.length);
    const same = left.row.task === right.row.task;
    frame(same ? `${left.row.task}: two episodes` : `${left.row.task} and ${right.row.task}`, button("Swap sides", () => compare(right.row.id, left.row.id)));
    const steps = Array.from({ length: end }, (_, number) => sides.map((side) => side.steps[number]));
    const numbers = new Map();
    const numbered = sides.map((side) => side.lines.map((line) => { if (!numbers.has(line)) numbers.set(line, numbers.size); return numbers.get(line); }));
    const key = (side, step) => (step?.obs ?? []).map((line) => numbered[side][line]).join(" ");
    const signOf = ([one, two]) => (!one || !two || called(one) !== called(two) ? "≠" : key(0, one) !== key(1, two) || one.status !== two.status ? "≈" : "");
    const differs = steps.map(signOf);
    const first = differs.findIndex(Boolean);
    let at = place.at === "end" ? end : Number(place.at || Math.max(0, first));
    if (!(at >= 0 && at <= end)) at = 0;

    const detail = h("section", { class: "detail", "aria-label": "Step, side by side" });
    const cell = (step) => h("span", {}, step ? [h("code", {}, called(step).slice(0, 200)), h("span", { class: "signs" }, signs(step))] : h("span", { class: "note" }, "–"));
    const bar = track({ "aria-label": "Steps of both", class: "track pair" }, narrow.matches ? 3.5 : 2.125, (item) => item === end
      ? h("div", { class: "entry" }, h("span", { class: "index" }, "end"), h("span", { class: "sign" }, left.row.outcome === right.row.outcome ? "" : "≠"), sides.map((side) => h("span", {}, badge(side.row.outcome))))
      : h("div", { class: "entry" }, h("span", { class: "index" }, item), h("span", { class: "sign", title: { "≠": "another call", "≈": "another observation" }[differs[item]] }, differs[item]), steps[item].map(cell)), (item) => pick(item));

    function pick(to) {
      at = to;
      keep({ at: at === end ? "end" : String(at) });
      drawPlace();
      say(at === end ? "The end" : `Step ${at}: ${{ "≠": "another call", "≈": "another observation" }[differs[at]] ?? "the same"}`);
    }
    function half(number) {
      const [step, other] = [steps[at][number], steps[at][1 - number]];
      const side = number === 0 ? -1 : 1;
      if (!step) return h("p", { class: "empty" }, "This episode has ended.");
      const both = (what) => (number === 0 ? [what(step), what(other ?? step)] : [what(other ?? step), what(step)]);
      const shown = (what) => sides.map((one, place_) => lines(one, steps[at][place_] ?? [])).map((all, place_) => (steps[at][place_] ? all : lines(sides[number], step)));
      return [
        h("p", { class: "head" }, marksOf(step)),
        titled("Call", h("code", { class: "call" }, marked(...both(called), side)), step.reason && h("p", { class: "bad" }, step.reason)),
        retried(step) && titled(count(step.attempts.length, "attempt"), attemptsOf(step)),
        step.picture && titled("Page", pictureOf(step)),
        titled("Observation", h("div", { class: "text whole", tabindex: "0", role: "region", "aria-label": "Observation" }, compared(...shown(), side, place.whole)), cut(step.obs_left_out)),
        step.note && titled("What the policy noted", text(step.note, "Note")),
      ];
    }
    drawPlace = () => {
      bar.pick(at);
      detail.replaceChildren(
        h("div", { class: "place" }, h("h2", {}, at === end ? "The end" : `Step ${at}`), at < end && h("span", { class: differs[at] ? "care" : "note" }, { "≠": "≠ another call", "≈": "≈ another observation" }[differs[at]] ?? "the same"),
          h("span", { class: "turn" }, button(["Next difference ", h("kbd", {}, "n")], () => keys.n()), button("← Previous", () => pick(at - 1), { disabled: at === 0 }), button("Next →", () => pick(at + 1), { disabled: at === end }))),
        h("div", { class: "sides" }, sides.map((side, number) => h("section", { "aria-label": number ? "Right" : "Left" },
          h("h3", {}, button(`${side.row.policy}, ${plain(side.row.outcome)}`, () => open(side.row.id, place.at), { class: "plain" }), same ? "" : ` · ${side.row.task}`),
          at === end ? endOf(side) : half(number)))));
    };
    const totals = [differs.filter((sign) => sign === "≠").length, differs.filter((sign) => sign === "≈").length];
    app.replaceChildren(
      h("p", { class: "goal", tabindex: "0", role: "region", "aria-label": "Goal" }, same ? left.goal : `${left.goal}\n${right.goal}`),
      h("p", { class: "summary" }, `${count(totals[0], "step")} with another call, ${totals[1]} with the same call and another observation, of ${end}`),
      bar.box, detail);
    bar.set([...Array(end + 1).keys()]);
    drawPlace();
    bar.box.focus({ preventScroll: true });
    return { ...walker(end + 1, () => at, pick, (to) => to === end || differs[to]), Enter: () => {} };
  }

  // Drawing, keys, theme

  let turn = 0;

  async function draw() {
    const mine = ++turn;
    const wanted = [place.a, place.view === "compare" ? place.b : place.a];
    document.documentElement.dataset.ready = "";
    theme();
    if (place.view && wanted.every((id) => known.has(id))) {
      const episodes = await Promise.all(wanted.map(load));
      if (mine !== turn) return;
      keys = place.view === "compare" ? showCompare(...episodes) : showEpisode(episodes[0]);
    } else keys = showList();
    if (place.view) scrollTo(0, 0);
    document.documentElement.dataset.ready = place.view || "list";
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const schemes = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).filter((rule) => rule.media?.mediaText.includes("prefers-color-scheme"));

  function theme() { // the rules for dark are those of the style sheet: switched on or off here, instead of by the system
    const wanted = place.theme ?? (dark.matches ? "dark" : "light");
    for (const rule of schemes) rule.media.mediaText = wanted === "dark" ? "all" : "not all";
    document.documentElement.style.colorScheme = wanted;
    byId("theme").textContent = wanted === "dark" ? "Light" : "Dark";
    byId("theme").setAttribute("aria-label", `Switch to ${wanted === "dark" ? "light" : "dark"}`);
    return wanted;
  }

  byId("theme").addEventListener("click", () => { keep({ theme: theme() === "dark" ? "light" : "dark" }); theme(); });
  dark.addEventListener("change", theme);
  narrow.addEventListener("change", draw);
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  addEventListener("popstate", () => { clearTimeout(keeping); keeping = 0; place = parse(); draw(); });
  addEventListener("pagehide", () => { if (keeping) settle(); });

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const field = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (field) {
      if (field.type === "search" && (event.key === "Escape" || event.key === "Enter")) { event.preventDefault(); keys.leave?.(); }
      return;
    }
    if (event.key === "Enter" && event.target.closest("button, summary, a")) return;
    if (["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key) && event.target.closest(".text, .goal")) return;
    if (event.key === "?") byId("help").showModal();
    else if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });

  place = parse();
  if (!location.hash && index.opened.length) {
    const [a, b] = index.opened;
    place = { view: b ? "compare" : "episode", a, b };
    settle();
  }
  draw();
})();
