console.log('no benchmark');
