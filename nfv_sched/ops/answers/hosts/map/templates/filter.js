(() => {
const box = document.querySelector(".filter");
const input = box.querySelector("input");
const status = box.querySelector("output");
const rows = [...document.querySelectorAll("tbody tr")];
const sections = [...document.querySelectorAll("main section")];
let texts;

function text(section) {
  const names = [...section.querySelectorAll(
    "h2 bdi, .groups bdi, .guests bdi")].map(name => name.textContent);
  return [...names, section.dataset.near || ""].join("\n").toLowerCase();
}

function apply() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length) texts ||= sections.map(text);
  let count = 0;
  sections.forEach((section, index) => {
    const shown = words.every(word => texts[index].includes(word));
    section.hidden = rows[index].hidden = !shown;
    count += shown;
  });
  status.textContent = words.length ? `${count} of ${sections.length} hosts ` +
    `match "${input.value.trim()}"` : "";
}

box.hidden = false;
input.addEventListener("input", apply);
})();
