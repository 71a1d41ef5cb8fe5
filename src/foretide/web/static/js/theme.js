// Runs before the first paint so that the page never flashes in the other theme. Dark or light: the person's choice, else the system's.
(function () {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => localStorage.getItem("foretide-theme");
  const apply = () => { document.documentElement.dataset.theme = chosen() || (system.matches ? "dark" : "light"); };
  window.foretideTheme = {
    toggle() {
      localStorage.setItem("foretide-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
      apply();
      window.dispatchEvent(new Event("foretide-theme"));
    },
  };
  system.addEventListener("change", () => { apply(); window.dispatchEvent(new Event("foretide-theme")); });
  apply();
})();
