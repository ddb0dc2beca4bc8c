// Elements of the page.
const byId = id => document.getElementById(id);

// An element with text and children. Text is never read as HTML.
function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

// A link that does something on this page. It breaks between words like other text, which a button does not.
function action(text, act) {
  const made = element("a", text);
  [made.className, made.tabIndex, made.onclick] = ["link", 0, act];
  made.setAttribute("role", "button");
  made.onkeydown = event => { if (event.key === "Enter") act(); };
  return made;
}

// Two columns: a name, and what belongs to it.
function factTable(rows) {
  const made = element("table");
  for (const [name, ...values] of rows) {
    const cells = values.map(value => { const cell = element("td"); cell.append(value); return cell; });
    made.append(element("tr", undefined, element("td", name), ...cells));
  }
  return made;
}

// A square of a colour, and its meaning.
function legendKey(shade, text) {
  const mark = element("span");
  mark.className = "key";
  mark.style.background = shade;
  const made = element("div", undefined, mark, text);
  made.className = "legend-key";
  return made;
}
