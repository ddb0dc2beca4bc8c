// Light and dark: as the system prefers, unless the switch says otherwise. The style sheet names the colours, and canvases read them here.
const THEMES = ["auto", "light", "dark"];

class Theme {
  // `changed` is called after every change, and not before the first one.
  constructor(button, changed) {
    [this.button, this.changed] = [button, changed];
    this.preference = matchMedia("(prefers-color-scheme: dark)");
    this.preference.addEventListener("change", () => this.apply());
    this.chosen = THEMES.includes(remembered("theme")) ? remembered("theme") : "auto";
    button.onclick = () => {
      this.chosen = THEMES[(THEMES.indexOf(this.chosen) + 1) % THEMES.length];
      remember("theme", this.chosen);
      this.apply();
    };
    this.show();
  }

  show() {
    const dark = this.chosen === "dark" || (this.chosen === "auto" && this.preference.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    this.button.textContent = `theme: ${this.chosen}`;
    const style = getComputedStyle(document.documentElement);
    this.colours = new Proxy({}, { get: (known, name) => known[name] ??= style.getPropertyValue(`--${name}`).trim() });
  }

  apply() {
    this.show();
    this.changed();
  }
}

// A page from a file may have no storage; the theme then lasts as long as the page.
function remembered(name) {
  try { return localStorage.getItem(`pto-${name}`); } catch { return null; }
}
function remember(name, value) {
  try { localStorage.setItem(`pto-${name}`, value); } catch { /* it lasts as long as the page */ }
}

// Black or white, whichever can be read on a colour such as #0072b2.
const inkOn = shade => {
  const [r, g, b] = [1, 3, 5].map(at => parseInt(shade.slice(at, at + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 150 ? "#111" : "#fff";
};
