// What a page shows that nobody could act upon by rule: texts with no element in them, shapes, colours, pictures. In the world of page.js.
globalThis.drawn ??= (() => {
  const of = (e, name) => Reflect.get(Object.getPrototypeOf(e), name, e);
  const SHAPES = new Set(["circle", "ellipse", "image", "line", "path", "polygon", "polyline", "rect", "text"]);
  const pictures = new Set(["canvas", "img", "svg"]);
  const NAMED = new Set(["button", "hidden", "image", "reset", "submit"]);
  const MOST = 300, LEAST = 3;
  const COLOURS = {
    "#000000": "black", "#808080": "grey", "#ffffff": "white", "#ff0000": "red", "#00ff00": "lime", "#008000": "green", "#0000ff": "blue",
    "#ffff00": "yellow", "#00ffff": "cyan", "#ff00ff": "magenta", "#ffa500": "orange", "#800080": "purple", "#ffc0cb": "pink", "#808000": "olive",
  };
  const CORNERS = {3: "triangle", 4: "quadrilateral", 5: "pentagon", 6: "hexagon", 7: "heptagon", 8: "octagon"};

  // A colour as a word or as #rrggbb; empty for none.
  function colour(text) {
    const [red, green, blue, opacity = 1] = (text.match(/^rgba?\((.*)\)$/)?.[1] ?? "").split(/[ ,/]+/).map(Number);
    if (blue === undefined || !opacity) return "";
    const code = `#${[red, green, blue].map(each => Math.round(each).toString(16).padStart(2, "0")).join("")}`;
    return COLOURS[code] ?? code;
  }

  function corners(e) {
    const points = (e.getAttribute("points") ?? "").trim().split(/[\s,]+/), found = new Set();
    for (let at = 0; at + 1 < points.length; at += 2) found.add(`${points[at]} ${points[at + 1]}`);
    return CORNERS[found.size] ?? "polygon";
  }

  // What something shows that has no element in it: what to call it, and whether it is drawn rather than written; null if nothing.
  function seen(e, name) {
    const {width, height} = e.getBoundingClientRect();
    if (width < LEAST && height < LEAST) return null;
    const style = getComputedStyle(e), drawing = e instanceof SVGElement;
    if (style.visibility !== "visible" || (drawing && !SHAPES.has(name))) return null;
    let text = "";
    for (const child of of(e, "childNodes")) {
      if (child.nodeType === 1 && child.localName !== "br" && !drawing) return null;
      if (child.nodeType < 4) text += child.nodeType === 3 || drawing ? child.textContent : " ";
    }
    text = text.replace(/\s+/g, " ").trim().slice(0, MOST);
    if (drawing) {
      const what = text || (name === "polygon" ? corners(e) : name === "rect" ? "rectangle" : name);
      return {label: `${colour(style.fill) || colour(style.stroke)} ${what}`.trim(), drawn: true};
    }
    if (text) return {label: text, drawn: false};
    const ground = colour(style.backgroundColor);
    const painted = style.backgroundImage !== "none" || style.content.startsWith("url(") || parseFloat(style.borderTopWidth);
    if (!ground && !painted && !pictures.has(name) && style.cursor === "auto") return null;
    return {label: `${ground} ${e.getAttribute("alt") || e.getAttribute("title") || called(e, name)}`.trim().slice(0, MOST), drawn: true};
  }

  const called = (e, otherwise) => [e.id, ...e.classList].filter(Boolean).join(" ").slice(0, MOST) || otherwise;

  // What to call something to act upon that has no name; empty if it has one.
  function unnamed(e, tag) {
    for (const name of ["aria-labelledby", "title", "placeholder"]) if (e.getAttribute(name)) return "";
    if (of(e, "labels")?.length || (tag === "input" ? NAMED.has(e.type) : tag !== "select" && tag !== "textarea" && of(e, "textContent").trim())) return "";
    return called(e, tag === "input" ? e.type : tag);
  }

  return {seen, unnamed, pictures};
})();
