// Light or dark, as the system says or as the reader does.

import { $ } from "./ui.js";

const themes = ["system", "light", "dark"];

export function init() {
  let theme = "system";
  try {
    theme = localStorage.getItem("theme") ?? theme;
  } catch { /* storage is forbidden: nothing is remembered */ }
  const button = $("theme");
  const show = () => {
    document.documentElement.dataset.theme = theme;
    button.textContent = `Colours: ${theme}`;
    button.ariaLabel = `Colours: ${theme === "system" ? "as the system" : theme}`;
    document.dispatchEvent(new Event("theme"));
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try {
      localStorage.setItem("theme", theme);
    } catch { /* as above */ }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}
