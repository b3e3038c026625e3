// Light and dark, the menu of narrow screens, and a button that copies a block of code.
(function () {
  "use strict";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  // Storage may be forbidden, as for files on a disk: then the choice holds for one page.
  function stored(value) {
    try {
      if (value) localStorage.setItem("theme", value);
      return localStorage.getItem("theme");
    } catch (error) {
      return value || null;
    }
  }

  function isDark() {
    return (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  }

  if (stored()) root.dataset.theme = stored();

  function addThemeButton() {
    const button = document.querySelector(".theme");
    const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      stored(root.dataset.theme);
      name();
    });
    system.addEventListener("change", name);
    name();
  }

  function addMenuButton() {
    const button = document.querySelector("button.menu");
    button.addEventListener("click", () => {
      const open = document.body.classList.toggle("open");
      button.setAttribute("aria-expanded", String(open));
    });
  }

  // Prompts ("$ ") are not part of a command.
  function commandsOf(block) {
    const lines = block.textContent.replace(/\n$/, "").split("\n");
    const commands = lines.filter((line) => line.startsWith("$ "));
    return (commands.length ? commands.map((line) => line.slice(2)) : lines).join("\n");
  }

  // The clipboard may be forbidden, as for files on a disk; the old way then mostly works. Returns whether it did.
  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch (error) {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const copied = document.execCommand("copy");
      area.remove();
      return copied;
    }
  }

  function addCopyButtons() {
    for (const block of document.querySelectorAll("main pre")) {
      const frame = document.createElement("div");
      frame.className = "block";
      block.replaceWith(frame);
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        button.textContent = (await copy(commandsOf(block))) ? "Copied" : "Not allowed";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      frame.append(block, button);
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    addThemeButton();
    addMenuButton();
    addCopyButtons();
  });
})();
