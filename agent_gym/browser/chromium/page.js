// What the engine does inside a page, in a world of its own that the page's scripts do not see. Everything it gives is JSON.
globalThis.agent ??= (() => {
  // A form answers to the names of its fields, and a document to those of its forms: what either has of its own is asked of what it is made after.
  const of = (e, name) => Reflect.get(Object.getPrototypeOf(e), name, e);
  const ask = (e, name, ...values) => of(e, name).apply(e, values);

  const NO_BOX = new Set(["area", "datalist", "dialog", "head", "html", "map", "noscript", "optgroup", "option", "script", "style", "template", "title"]);
  const EMPTY = new Set(["head", "noscript", "script", "style", "template"]);
  const ACTS = new Set(["a", "area", "button", "input", "select", "summary", "textarea"]);
  const REFERS = new Set(["id", "for", "form", "list", "aria-labelledby"]);
  const UNTYPED = new Set(["hidden", "button", "image", "reset", "submit"]);
  const CUTS = /hidden|clip/, UNBOXED = /^(?:inline|contents)$/;
  const NOTHING = /^(?:inset\((?:[5-9]\d|\d{3,})(?:\.\d+)?%\)|circle\(0(?:px|%)?(?: |\)))/; // clip paths that leave nothing
  const NAME = /^[A-Za-z][\w.-]*$/;
  const TELLS = /^(?:button|checkbox|combobox|link|listbox|menuitem\w*|option|radio|searchbox|slider|spinbutton|switch|tab|textbox|treeitem)$/;
  const BAD = /[\x00-\x08\x0b\x0e-\x1f\ufffe\uffff]/g;
  const DEEPEST = 120, MOST = 10000, MOST_COPIED = 100000;

  const numbers = new WeakMap(); // one an element, for as long as the document lives
  let count = 0;
  let shown = new Map(); // the elements last read, by number
  let invalid = null; // the control that stopped a form

  const styles = new CSSStyleSheet();
  styles.replaceSync("*,*::before,*::after{animation:none!important;transition:none!important;scroll-behavior:auto!important;caret-color:transparent!important}");
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, styles];

  // Frames and shadow roots keep to themselves what controls in them say; listening twice is listening once.
  const invalidates = event => { invalid ??= event.composedPath()[0]; };
  const listen = root => ask(root, "addEventListener", "invalid", invalidates, true);
  listen(window);

  // A page that is gone back to comes as it was sent: else the browser would put back what had been typed into its forms.
  addEventListener("pagehide", () => {
    for (const e of ask(document, "querySelectorAll", "form,input,select,textarea")) ask(e, "setAttribute", "autocomplete", "off");
  }, true);

  // The browser has one clipboard, for all its episodes. Here each has its own, of plain text, which Python takes from page to page.
  const clipboard = {text: ""};
  const shared = () => { try { return top.agent.clipboard; } catch { return clipboard; } };
  for (const kind of ["copy", "cut", "paste"]) addEventListener(kind, event => {
    if (!event.isTrusted) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const e = event.composedPath()[0], own = of(e, "ownerDocument") ?? document, data = new DataTransfer();
    if (kind === "paste") data.setData("text/plain", shared().text);
    const selected = String(ask(own, "getSelection"));
    const free = ask(e, "dispatchEvent", new ClipboardEvent(kind, {bubbles: true, cancelable: true, composed: true, clipboardData: data}));
    const text = free ? selected : data.getData("text/plain");
    if (kind !== "paste") shared().text = text.slice(0, MOST_COPIED) || shared().text;
    if (free && kind === "cut") ask(own, "execCommand", "delete");
    if (free && kind === "paste") ask(own, "execCommand", "insertText", false, shared().text);
  }, true);

  function offer(text) {
    clipboard.text = text;
  }

  const clean = text => text.toWellFormed().replace(BAD, "").replace(/[&<>]/g, c => c === "&" ? "&amp;" : c === "<" ? "&lt;" : "&gt;").replace(/\r/g, "&#13;").replace(/\f/g, " ");
  const quoted = text => clean(text).replace(/["\n\t]/g, c => `&#${c.charCodeAt(0)};`);

  // --- Reading ---

  class Reading {
    constructor(every) {
      this.every = every; // whether whatever shows something is an element of its own, with its box; see drawn.js
      this.out = [];
      this.numbers = [];
      this.values = {};
      this.checks = {};
      this.selections = {};
      this.frames = 0; // read so far, for names of ids
      this.unread = 0; // of another origin
      this.deep = false;
      this.index = new Map();
      this.clips = new Map(); // whether all that is in an element is cut off
    }

    // Writes an element; says whether anything in it can be seen.
    element(e, prefix, depth, within) {
      if (depth > DEEPEST || this.numbers.length > MOST) { this.deep ||= depth > DEEPEST; return false; }
      const name = of(e, "localName"), frame = name === "iframe" || name === "frame";
      const picture = this.every && (within.svg || drawn.pictures.has(name));
      const tag = frame ? "section" : NAME.test(name) && !picture ? name : "div";
      let number = numbers.get(e);
      if (number === undefined) numbers.set(e, number = ++count);
      const index = this.numbers.push(number) - 1;
      shown.set(number, e);
      this.index.set(e, index);
      const boxless = NO_BOX.has(tag) || within.svg || within.hidden || (tag === "input" && e.type === "hidden");
      let seen = boxless || ask(e, "checkVisibility", {visibilityProperty: true});
      let hidden = false;
      if (!seen && !ask(e, "checkVisibility")) hidden = getComputedStyle(e).display !== "contents";
      if (seen && !boxless && (ACTS.has(tag) || ask(e, "hasAttribute", "tabindex")) && this.lost(e)) [seen, hidden] = [false, true];
      const acts = this.every && ((ACTS.has(tag) && (tag !== "a" || ask(e, "hasAttribute", "href"))) || TELLS.test(ask(e, "getAttribute", "role")));
      const leaf = this.every && !acts && !frame && seen && !hidden && !within.acts && !within.hidden ? drawn.seen(e, name) : null;
      const told = leaf ? `${this.box(e)} _leaf=""${leaf.drawn ? ' role="img"' : ""} aria-label="${quoted(leaf.label)}"` : "";
      const has = name => ask(e, "hasAttribute", name);
      const itself = leaf && has("tabindex") && !has("aria-label") && !has("role"); // what the tab order leads to
      this.out.push("<", tag, frame ? ' _frame=""' : "", itself ? told : acts || has("tabindex") || has("contenteditable") ? this.box(e) : "");
      const label = acts && !has("aria-label") && drawn.unnamed(e, tag);
      if (label) this.out.push(` aria-label="${quoted(label)}"`);
      if (!frame) for (const {name, value} of of(e, "attributes")) this.attribute(e, name, value, prefix, boxless, hidden);
      const mark = this.out.push(hidden ? ' hidden=""' : "") - 1;
      this.out.push(">");
      this.state(e, tag, index);
      const svg = within.svg || name === "svg";
      const inner = {svg, hidden: within.hidden || hidden, mute: (!seen && !hidden) || (this.every && svg), acts: within.acts || acts};
      let any = false;
      if (leaf) {
        if (itself) this.out.push(clean(leaf.label));
        else {
          this.out.push(`<span${told}>`, clean(leaf.label), "</span>");
          this.numbers.push(number);
        }
        this.out.push("</", tag, ">");
        return true;
      }
      for (const [child, name] of this.children(e, tag, frame, prefix)) {
        const type = of(child, "nodeType");
        if (type === 1) any = this.element(child, name, depth + 1, inner) || any;
        else if (type === 3 && !inner.mute) this.out.push(clean(child.data));
      }
      if (!seen && !hidden && !any && !(getComputedStyle(e).display === "contents")) this.out[mark] = ' hidden=""';
      this.out.push("</", tag, ">");
      return (seen && !hidden) || any;
    }

    box(e) {
      if (!this.every) return "";
      const rect = ask(e, "getBoundingClientRect");
      const {x, y} = outside(e, rect.left, rect.top), {x: right, y: bottom} = outside(e, rect.right, rect.bottom);
      return ` _box="${[x, y, right - x, bottom - y].map(Math.round).join(" ")}"`;
    }

    // Whether nobody can see an element to act upon: it is cut off or transparent, and its middle takes no clicks. Whatever stands behind
    // something that shows in its place, as a control does behind its label or a file field behind a button, is there all the same.
    lost(e) {
      const cut = this.clipped(e);
      if (!cut && ask(e, "checkVisibility", {opacityProperty: true})) return false;
      if (of(e, "labels")?.length || of(e, "type") === "file") return false;
      const rect = ask(e, "getBoundingClientRect");
      const hit = ask(ask(e, "getRootNode"), "elementFromPoint", rect.left + rect.width / 2, rect.top + rect.height / 2);
      return hit ? !holds(e, hit) : cut || getComputedStyle(e).pointerEvents === "none";
    }

    clipped(e) {
      if (!e || of(e, "nodeType") !== 1 || of(e, "localName") === "body") return false;
      let cut = this.clips.get(e);
      if (cut !== undefined) return cut;
      const style = getComputedStyle(e), outer = of(e, "assignedSlot") ?? around(e);
      cut = NOTHING.test(style.clipPath)
        || (style.position !== "absolute" && style.position !== "fixed" && this.clipped(outer && of(outer, "nodeType") === 11 ? around(outer) : outer))
        || (CUTS.test(style.overflow) && of(e, "clientWidth") * of(e, "clientHeight") === 0 && !UNBOXED.test(style.display));
      this.clips.set(e, cut);
      return cut;
    }

    attribute(e, name, value, prefix, boxless, hidden) {
      if (!NAME.test(name) || name === "style" || (name === "hidden" && !boxless) || (name === "popover" && !hidden)) return;
      if (prefix && REFERS.has(name)) value = value.split(/\s+/).filter(Boolean).map(each => prefix + each).join(" ");
      if (prefix && name === "href" && of(e, "ownerDocument") !== document && e.href) value = String(e.href);
      this.out.push(" ", name, '="', quoted(value), '"');
    }

    state(e, tag, index) {
      if (tag === "input") {
        if (e.type === "checkbox" || e.type === "radio") this.checks[index] = e.checked;
        else if (e.type === "file") this.values[index] = [...e.files].map(file => file.name).join("\n");
        else if (!UNTYPED.has(e.type)) this.values[index] = e.value;
      } else if (tag === "textarea") this.values[index] = e.value;
      else if (tag === "select") this.selections[index] = [...e.options].flatMap((option, at) => option.selected ? [at] : []);
    }

    *children(e, tag, frame, prefix) {
      if (EMPTY.has(tag)) return;
      let nodes = of(e, "childNodes");
      const root = of(e, "shadowRoot");
      if (frame) {
        const inside = e.contentDocument && of(e.contentDocument, "body");
        if (!inside) { this.unread++; return; }
        listen(e.contentDocument);
        nodes = inside.childNodes;
        prefix = `frame${++this.frames}-`;
      } else if (root) {
        listen(root);
        nodes = root.childNodes;
        prefix = `${prefix}shadow${++this.frames}-`;
      } else if (tag === "slot" && e.assignedNodes().length) nodes = e.assignedNodes({flatten: true});
      for (const node of nodes) yield [node, prefix];
    }
  }

  function read(every) {
    shown = new Map();
    const reading = new Reading(every);
    reading.element(of(document, "documentElement") ?? ask(document, "createElement", "html"), "", 1, {svg: false, hidden: false, mute: false, acts: false});
    if (invalid && !of(invalid, "isConnected")) invalid = null;
    const {numbers, values, checks, selections, unread, deep, index, out} = reading;
    return {
      markup: out.join(""), numbers, values, checks, selections, unread, deep, large: numbers.length > MOST,
      focus: index.get(focused()) ?? -1, invalid: index.get(invalid) ?? -1, message: invalid?.validationMessage ?? "",
      title: of(document, "title"), url: location.href, base: of(document, "baseURI"),
      target: ask(document, "querySelector", "base[target]")?.target ?? "",
      clipboard: clipboard.text,
    };
  }

  function focused() {
    let e = of(document, "activeElement");
    while (e) {
      const within = of(e, "shadowRoot") ?? (of(e, "localName") === "iframe" ? e.contentDocument : null);
      const inner = within && of(within, "activeElement");
      if (!inner) return e === of(of(e, "ownerDocument"), "body") ? null : e;
      e = inner;
    }
    return null;
  }

  // --- Acting ---

  function find(number) {
    invalid = null; // whoever acts has seen what it said
    const e = shown.get(number);
    return e && of(e, "isConnected") ? e : null;
  }

  const around = e => of(e, "parentNode") ?? (of(e, "nodeType") === 11 ? of(e, "host") : null);

  function holds(e, inner) {
    for (; inner; inner = around(inner)) if (inner === e) return true;
    return false;
  }

  // Where to point at an element so that it, and nothing over it, is hit.
  function point(number) {
    const e = find(number);
    if (!e) return {gone: true};
    ask(e, "scrollIntoViewIfNeeded", true);
    const rects = [...ask(e, "getClientRects")].filter(rect => rect.width >= 1 && rect.height >= 1);
    if (!rects.length) return {empty: true};
    let cover = null;
    for (const rect of rects) {
      for (const [right, down] of [[0.5, 0.5], [0.2, 0.5], [0.8, 0.5], [0.5, 0.2], [0.5, 0.8]]) {
        const x = rect.left + rect.width * right, y = rect.top + rect.height * down;
        const over = covering(e, x, y);
        if (!over) return outside(e, x, y);
        if (over !== window) cover ??= over;
      }
    }
    return cover ? {covered: called(cover)} : {outside: true};
  }

  // What is over an element at a point of its own document: null if nothing is, the window if the point is not in it.
  function covering(e, x, y) {
    for (;;) {
      const hit = ask(ask(e, "getRootNode"), "elementFromPoint", x, y);
      if (!hit) return window;
      if (!holds(e, hit) && ![...of(e, "labels") ?? []].some(label => holds(label, hit) && label.offsetParent)) return hit;
      const view = of(of(e, "ownerDocument"), "defaultView");
      if (view === window) return null;
      e = view.frameElement;
      ({x, y} = through(e, x, y));
    }
  }

  // A point in a frame as a point of the document that the frame is in, which may show it larger or smaller.
  function through(frame, x, y) {
    const rect = frame.getBoundingClientRect(), style = getComputedStyle(frame);
    const scale = (shown, own) => Math.abs(shown - own) < 1 ? 1 : shown / own;
    return {
      x: rect.left + scale(rect.width, frame.offsetWidth) * (frame.clientLeft + parseFloat(style.paddingLeft) + x),
      y: rect.top + scale(rect.height, frame.offsetHeight) * (frame.clientTop + parseFloat(style.paddingTop) + y),
    };
  }

  // A point of an element's document as a point of the page.
  function outside(e, x, y) {
    for (let view = of(of(e, "ownerDocument"), "defaultView"); view !== window; view = view.parent) {
      ({x, y} = through(view.frameElement, x, y));
    }
    return {x, y};
  }

  function called(e) {
    const text = (of(e, "innerText") ?? "").trim().replace(/\s+/g, " ").slice(0, 40), id = of(e, "id");
    return `<${of(e, "localName")}${id ? ` id=${JSON.stringify(id)}` : ""}>${text ? ` ${JSON.stringify(text)}` : ""}`;
  }

  function press(number) { // for a checkbox without a box of its own, which a label stands for
    find(number).click();
  }

  function focus(number, all) {
    const e = find(number);
    if (!e) return false;
    const own = of(e, "ownerDocument");
    if (of(own, "activeElement") !== e || all) {
      ask(e, "focus", {focusVisible: true});
      if (of(e, "isContentEditable")) {
        const selection = ask(own, "getSelection");
        selection.selectAllChildren(e);
        if (!all) selection.collapseToEnd();
      } else if (all) of(e, "select")?.call(e);
      else if ((of(e, "selectionStart") ?? null) !== null) e.setSelectionRange(e.value.length, e.value.length);
    }
    return true;
  }

  function changed(e) {
    e.dispatchEvent(new Event("input", {bubbles: true, composed: true}));
    e.dispatchEvent(new Event("change", {bubbles: true}));
    return true;
  }

  function assign(number, value) {
    const e = find(number);
    if (!e) return false;
    e.focus();
    e.value = value;
    return changed(e);
  }

  function select(number, chosen) {
    const e = find(number);
    if (!e) return false;
    e.focus();
    [...e.options].forEach((option, at) => { option.selected = chosen.includes(at); });
    return changed(e);
  }

  function upload(number, files) {
    const e = find(number);
    if (!e) return false;
    const chosen = new DataTransfer();
    for (const [name, type, content] of files) {
      chosen.items.add(new File([Uint8Array.from(atob(content), c => c.charCodeAt(0))], name, {type, lastModified: 0}));
    }
    e.focus();
    e.files = chosen.files;
    return changed(e);
  }

  // After whatever was due, and one frame.
  const frame = () => new Promise(done => setTimeout(() => requestAnimationFrame(() => setTimeout(() => done(whole())))));
  const whole = () => ({complete: of(document, "readyState") === "complete"});
  const look = every => ({...whole(), ...read(every)});
  const watch = async every => ({...await frame(), ...read(every)});

  // The box of each element that can be seen in the window, and whether something is over its middle.
  function boxes() {
    const seen = {};
    for (const [number, e] of shown) {
      if (!of(e, "isConnected")) continue;
      const rect = ask(e, "getBoundingClientRect");
      const x = rect.left + rect.width / 2, y = rect.top + rect.height / 2;
      const {x: left, y: top} = outside(e, rect.left, rect.top), {x: right, y: bottom} = outside(e, rect.right, rect.bottom);
      if (right - left < 1 || bottom - top < 1 || left >= innerWidth || top >= innerHeight || right <= 0 || bottom <= 0) continue;
      seen[number] = {box: [left, top, right - left, bottom - top].map(Math.round), covered: covering(e, x, y) !== null};
    }
    return seen;
  }

  // --- What an episode could leave behind ---

  async function tried(get) {
    try { return await get(); } catch { return null; } // a blank page has none of it
  }

  async function probes() {
    const permissions = {};
    for (const name of ["camera", "clipboard-read", "clipboard-write", "geolocation", "microphone", "notifications", "persistent-storage"]) {
      permissions[name] = await tried(async () => (await navigator.permissions.query({name})).state);
    }
    return {
      local_storage: await tried(() => ({...localStorage})),
      session_storage: await tried(() => ({...sessionStorage})),
      indexed_db: await tried(async () => (await indexedDB.databases()).map(database => database.name)),
      caches: await tried(() => caches.keys()),
      service_workers: await tried(async () => (await navigator.serviceWorker.getRegistrations()).map(each => each.scope)),
      window_name: window.name, permissions,
      scroll: [scrollX, scrollY], focus: (at => at && of(at, "localName"))(focused()),
    };
  }

  return {look, watch, point, press, focus, assign, select, upload, boxes, frame, probes, offer, clipboard};
})();
