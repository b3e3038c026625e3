// Imports of the module. The engine puts their functions into Module.orielHost (host.js).
mergeInto(LibraryManager.library, {
  oriel_host_open: function (name) { return Module['orielHost'].open(name); },
  oriel_host_close: function (file) { Module['orielHost'].close(file); },
  oriel_host_size: function (file) { return Module['orielHost'].size(file); },
  oriel_host_read: function (file, offset, to, bytes) { return Module['orielHost'].read(file, offset, to, bytes); },
  oriel_host_log: function (level, message) { Module['orielHost'].log(level, message); },
  oriel_host_number: function (name, value) { Module['orielHost'].number(name, value); },
  oriel_host_progress: function (done, total) { return Module['orielHost'].progress(done, total); },
  oriel_host_token: function (id, text, bytes, logprob, topCount, top) { return Module['orielHost'].token(id, text, bytes, logprob, topCount, top); },
  oriel_host_part: function (kind, call, text, bytes, path) { return Module['orielHost'].part(kind, call, text, bytes, path); },
  oriel_host_logits: function (index, logits, count) { return Module['orielHost'].logits(index, logits, count); },
});
