// What the pages share. `given` is what the task shows; nothing is kept but by `save`.
const $ = id => document.getElementById(id);

// An element with properties, and what is inside it.
const make = (tag, facts = {}, ...inside) => {
  const element = Object.assign(document.createElement(tag), facts);
  element.append(...inside);
  return element;
};

// Saves a text or a file, and says what the site holds then.
async function save(value) {
  const form = new FormData();
  form.append("value", value);
  const answer = await fetch(`/${location.pathname.split("/")[1]}`, {method: "POST", body: form});
  const text = await answer.text();
  $("saved").textContent = answer.ok ? `Saved: ${text}` : "It could not be saved.";
}
