// What the module imports: files that the engine has registered in Module.orielHost, and the callbacks of the C API.
mergeInto(LibraryManager.library, {
  oriel_host_open: function (name) { return Module['orielHost'].open(name); },
  oriel_host_close: function (file) { Module['orielHost'].close(file); },
  oriel_host_size: function (file) { return Module['orielHost'].size(file); },
  oriel_host_read: function (file, offset, to, bytes) { return Module['orielHost'].read(file, offset, to, bytes); },
  oriel_host_log: function (level, message) { Module['orielHost'].log(level, message); },
  oriel_host_progress: function (done, total, user) { return Module['orielHost'].progress(done, total, user); },
  oriel_host_token: function (event, user) { return Module['orielHost'].token(event, user); },
  oriel_host_part: function (part, user) { return Module['orielHost'].part(part, user); },
  oriel_host_logits: function (index, logits, count, user) { return Module['orielHost'].logits(index, logits, count, user); },
});
