// What is shown, as the fragment of the address: the same page and address show the same.
class Address {
  // `write` gives the fields as pairs of names and texts; `read` takes an object of texts, of which any may be missing.
  constructor(write, read) {
    [this.write, this.read, this.pending] = [write, read, 0];
    addEventListener("hashchange", () => this.restore());
  }

  restore() {
    const text = location.hash.slice(1);
    if (text && text !== this.written) this.read(Object.fromEntries(new URLSearchParams(text)));
  }

  // Not more often than browsers allow a page to change its address.
  changed() {
    clearTimeout(this.pending);
    this.pending = setTimeout(() => this.save(), 150);
  }

  save() {
    const fields = this.write().filter(([, value]) => value !== "" && value !== null);
    // `new URLSearchParams` would write %2C and %23 for what may stand in a fragment as it is.
    this.written = fields.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%2C", ",")}`).join("&");
    history.replaceState(null, "", `#${this.written}`);
  }
}

// A list of finite numbers from a text such as `1,2`; null, if it is none of that length.
function numbers(text, length) {
  const list = (text ?? "").split(",").map(Number);
  return text && list.length === length && list.every(Number.isFinite) ? list : null;
}
